"""From texts to object code: names, options, headers, and errors that point at the user's lines."""

from __future__ import annotations

import hashlib
import os
import re
import string
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from gridstride.errors import CompileError
from gridstride.targets.cpu import compiler, toolchain, unit
from gridstride.targets.cpu.target import CpuTarget

from .conftest import MakeProgram

SAXPY = """\
extern "C" __global__ void saxpy(float a, const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += a * x[i];
}
"""


@pytest.fixture(autouse=True)
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A temporary folder of the test's own, which must be empty again at the end."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield folder
    assert list(folder.iterdir()) == []


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The arguments of every call of the compiler."""
    seen: list[list[str]] = []
    run = toolchain.Toolchain.run
    monkeypatch.setattr(
        toolchain.Toolchain,
        "run",
        lambda self, arguments, *rest: (seen.append(arguments), run(self, arguments, *rest))[1],
    )
    monkeypatch.setattr(compiler, "_build_runtime_quietly", lambda: None)
    return seen


# ---- names ----


def test_an_ordinary_kernel_is_one_call_of_the_compiler(
    make_program: MakeProgram, calls: list[list[str]]
) -> None:
    text = "#define N 16\n__global__ void k(int* x) { __shared__ int t[N]; t[0] = 1; x[0] = t[0]; }"
    compiler.compile_program(make_program(text, "k"))
    assert len(calls) == 1


def test_functions_globals_and_constants_are_those_asked_for(make_program: MakeProgram) -> None:
    text = """
    struct S { char a; double b; };
    namespace ns { __constant__ float taps[4];
    template <class T, int N> __global__ void f(T* x) { x[0] = N + ns::taps[0]; } }
    __device__ int counter;
    """
    names = ("ns::f<float, 3>", "ns::f< unsigned,4 >")
    program = make_program(text, *names, globals=("ns::taps", "&counter"), constants=("sizeof(S)", "1 - 3"))
    code = compiler.compile_program(program)
    assert code.format == "shared object"
    assert tuple(code.functions) == names
    assert set(code.globals) == {"ns::taps", "&counter"}
    assert code.constants == {"sizeof(S)": 16, "1 - 3": -2}
    assert [parameter.name for parameter in code.functions[names[1]].signature or ()] == ["x"]


def test_a_program_without_names_is_compiled(make_program: MakeProgram) -> None:
    assert compiler.compile_program(make_program(SAXPY)).functions == {}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"kernels": ("saxpi",)}, "there is no kernel 'saxpi'; the text defines: saxpy, twice<...>"),
        ({"kernels": ("twice",)}, "'twice' is a template: ask for an instance, for example twice<float>"),
        ({"kernels": ("twice<Unknown>",)}, "the kernel 'twice<Unknown>' cannot be taken"),
        ({"kernels": ("helper",)}, "'helper' is a function but not a kernel"),
        ({"kernels": ("plain",)}, "'plain' is a function but not a kernel"),
        ({"globals": ("count",)}, "there is no variable 'count'; the text declares: counter"),
        ({"constants": ("sizeof(Nothing)",)}, "there is no constant 'sizeof(Nothing)'"),
    ],
)
@pytest.mark.parametrize("header", ["", "#if 1\n#endif\n"])
def test_names_that_are_not_there(
    make_program: MakeProgram, fields: dict[str, tuple[str, ...]], message: str, header: str
) -> None:
    text = (
        header
        + SAXPY
        + "template <class T> __global__ void twice(T* x) { __shared__ T s; s = *x; *x = 2 * s; }\n"
    )
    text += "__device__ int counter;\n__device__ int helper() { return 1; }\nvoid plain() {}\n"
    program = make_program(
        text, *fields.get("kernels", ("saxpy",)), **{k: v for k, v in fields.items() if k != "kernels"}
    )
    with pytest.raises(CompileError) as caught:
        compiler.compile_program(program)
    assert str(caught.value).startswith(f"test: {message}")


def test_launch_bounds_are_evaluated(make_program: MakeProgram) -> None:
    text = "#define HALF 64\n__global__ void __launch_bounds__(2 * HALF) k() {}\n__global__ void l() {}"
    code = compiler.compile_program(make_program(text, "k", "l"))
    assert code.constants == {unit.LAUNCH_BOUNDS + "k": 128}


def test_too_much_static_shared_memory_is_refused(make_program: MakeProgram) -> None:
    text = "template <int N> __global__ void k(int* x) { __shared__ int s[N]; s[0] = *x; *x = s[0]; }"
    compiler.compile_program(make_program(text, "k<12288>"))
    with pytest.raises(
        CompileError, match=r"kernel 'k<12289>' declares 49156 bytes .* 49152 is the most; .* extern"
    ):
        compiler.compile_program(make_program(text, "k<12289>"))


# ---- errors ----


def _message(
    make_program: MakeProgram, text: str, *kernels: str, **fields: object
) -> tuple[list[str], CompileError]:
    with pytest.raises(CompileError) as caught:
        compiler.compile_program(make_program(text, *kernels, **fields))
    return str(caught.value).splitlines(), caught.value


def test_an_error_shows_line_and_caret_and_carries_the_rest(make_program: MakeProgram) -> None:
    lines, error = _message(make_program, SAXPY.replace("a * x", "b * x"), "saxpy")
    assert re.fullmatch("test: .* rejected the program", lines[0])
    assert re.match("test.cu:3:24: error: .*'b'", lines[1])
    assert lines[2] == "        if (i < n) y[i] += b * x[i];"
    assert lines[3] == " " * (4 + 23) + "^"
    assert error.name == "test"
    assert error.source == SAXPY.replace("a * x", "b * x")
    assert "'b'" in error.log
    assert "-march=native" in error.command


def test_columns_are_the_users_on_rewritten_lines(make_program: MakeProgram) -> None:
    text = "__global__ void k() { __shared__ int s[2], t; s[0] = t; wrong(1); }"
    lines, _ = _message(make_program, text, "k")
    assert lines[1].startswith(f"test.cu:1:{text.index('wrong') + 1}: error: ")
    assert lines[3].index("^") == 4 + text.index("wrong")


def test_a_path_and_lines_survive_the_preprocessor(make_program: MakeProgram) -> None:
    text = "#if 0\n__shared__\n#endif\n__global__ void k() {\n    __shared__ int s;\n    s = wrong;\n}\n"
    lines, _ = _message(make_program, text, "k", path="some/kernel.cu")
    assert lines[1].startswith("some/kernel.cu:6:9: error: ")
    assert lines[2:4] == ["        s = wrong;", "            ^"]


def test_errors_in_a_given_header_show_its_line(make_program: MakeProgram) -> None:
    headers = (("mine/part.cuh", "__device__ int one() {\n    return on;\n}\n"),)
    lines, _ = _message(
        make_program, "#include <mine/part.cuh>\n__global__ void k() { one(); }", "k", headers=headers
    )
    assert "mine/part.cuh:2:12: error: " in lines[1]
    assert lines[2] == "        return on;"


def test_many_errors_are_cut(make_program: MakeProgram) -> None:
    text = "__global__ void k() {\n" + "".join(f"    wrong{index}();\n" for index in range(9)) + "}"
    lines, error = _message(make_program, text, "k")
    assert lines[-1] == "... and 4 more (attribute log)"
    assert "wrong8" in error.log


@pytest.mark.parametrize(
    ("statement", "hint"),
    [
        ('const char* s = "abc;', "raw string"),
        ("int a = 1 int b = 2;", "semicolon"),
        ("std::vector<int> v;", "alone"),
        ("throw 1;", "no exceptions"),
        ("one(1, 2, 3);", "the number and the types of the arguments"),
    ],
)
def test_common_mistakes_get_a_hint(make_program: MakeProgram, statement: str, hint: str) -> None:
    text = "namespace std {}\ntemplate <class T> __device__ T one(T x) { return x; }\n"
    lines, _ = _message(make_program, f"{text}__global__ void k() {{ {statement} }}", "k")
    assert any(line.startswith("    hint: ") and hint in line for line in lines)


def test_a_missing_header_is_hinted_at(make_program: MakeProgram) -> None:
    lines, _ = _message(make_program, "#include <no/such.cuh>\n__global__ void k() {}", "k")
    assert lines[1].startswith("test.cu:1:10: error: ")
    assert any("headers=" in line and "-I" in line for line in lines)


@pytest.mark.parametrize("header", ["", "#if 1\n#endif\n"])
def test_what_cannot_run_is_refused_by_name_and_line(make_program: MakeProgram, header: str) -> None:
    text = header + '__global__ void k() {\n    int x;\n    asm("mov.u32 %0, %%pm1;" : "=r"(x));\n}'
    lines, _ = _message(make_program, text, "k")
    assert lines[0].startswith(
        f"test: test.cu:{3 + header.count(chr(10))}:5: error: inline PTX: the register %pm1 cannot run"
    )
    assert lines[1].strip().startswith("asm(")
    assert lines[2] == "        ^"


def test_what_is_not_compiled_is_not_refused(make_program: MakeProgram) -> None:
    text = '#ifdef __NEVER__\n#define LANE(x) asm("mov" : "=r"(x))\n#else\n#define LANE(x) x = 0\n#endif\n'
    compiler.compile_program(make_program(text + "__global__ void k() { int x; LANE(x); }", "k"))


def test_a_macro_that_hides_a_refused_construct_is_seen_through(make_program: MakeProgram) -> None:
    text = '#define LANE(x) asm("mov" : "=r"(x))\n\n__global__ void k() { int x; LANE(x); }'
    lines, _ = _message(make_program, text, "k")
    assert lines[0].startswith("test: test.cu:3:")


def test_a_compiler_that_takes_too_long_is_ended(
    make_program: MakeProgram, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiler, "_build_runtime_quietly", lambda: None)
    toolchain.find_toolchain()
    monkeypatch.setattr(toolchain, "TIME_LIMIT", 0.001)
    lines, _ = _message(make_program, SAXPY, "saxpy")
    assert lines == ["test: the compiler was ended after 0.001 seconds"]


def test_a_killed_compiler_is_reported(
    make_program: MakeProgram, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(compiler, "_build_runtime_quietly", lambda: None)
    fake = tmp_path / "killed"
    fake.write_text('#!/bin/sh\n[ "$1" = --version ] && echo "g++ killed" && exit\nkill -9 $$\n')
    fake.chmod(0o755)
    monkeypatch.setenv("GRIDSTRIDE_CXX", str(fake))
    lines, _ = _message(make_program, SAXPY, "saxpy")
    assert lines == ["test: the compiler was ended by signal 9 (SIGKILL)"]


# ---- options and headers ----


def test_macros_from_options(make_program: MakeProgram) -> None:
    program = make_program(
        "#ifdef GONE\n#error gone\n#endif\n__global__ void k() {}\nenum { value = N + FLAG };",
        "k",
        options=("-DN=4", "-D", "FLAG", "-DGONE", "-UGONE"),
        constants=("value",),
    )
    assert compiler.compile_program(program).constants == {"value": 5}


def test_options_may_hide_a_shared_declaration(make_program: MakeProgram) -> None:
    text = "__global__ void k(int* x) { TILE(4); tile[0] = *x; *x = tile[0]; }"
    program = make_program(text, "k", options=("-DTILE(n)=__shared__ int tile[n]",))
    assert set(compiler.compile_program(program).functions) == {"k"}


def test_short_macros_break_no_header_of_ours(make_program: MakeProgram) -> None:
    names = [*string.ascii_letters, "type", "value", "size", "kind", "name", "make", "kernels", "T0", "N1"]
    options = tuple(f"-D{name}=3" for name in names)
    program = make_program("__global__ void work() { __shared__ float tile[N]; }", "work", options=options)
    assert set(compiler.compile_program(program).functions) == {"work"}


@pytest.mark.parametrize("header", ["vector", "iostream", "thread"])
def test_headers_of_the_host_are_not_seen(make_program: MakeProgram, header: str) -> None:
    lines, _ = _message(make_program, f"#include <{header}>\n__global__ void k() {{}}", "k")
    assert lines[1].startswith("test.cu:1:10: error: ")
    assert any("do not see the host's headers" in line for line in lines)


@pytest.mark.parametrize(("option", "value"), [("", 201703), ("-std=c++14", 201402), ("--std=c++20", 202002)])
def test_the_standard_is_chosen(make_program: MakeProgram, option: str, value: int) -> None:
    program = make_program("", options=(option,) if option else (), constants=("__cplusplus",))
    assert compiler.compile_program(program).constants == {"__cplusplus": value}


def test_lambdas_of_any_type(make_program: MakeProgram) -> None:
    """NVRTC 13.0 refuses them in kernels, later ones do not."""
    for form, standard in (("(auto v)", "c++17"), ("<class T>(T v)", "c++20")):
        text = f"__global__ void k(int* x) {{ auto f = []{form} {{ return v + 1; }}; *x = f(*x) + (int)f(0.5); }}"
        compiler.compile_program(make_program(text, "k", options=(f"--std={standard}",)))


def test_headers_from_folders_are_dependencies(make_program: MakeProgram, tmp_path: Path) -> None:
    folder = tmp_path / "in clude"
    (folder / "deep").mkdir(parents=True)
    (folder / "a.cuh").write_text(
        "#include <deep/b.cuh>\n__device__ int a() { __shared__ int s; return s = b(); }"
    )
    (folder / "deep" / "b.cuh").write_text("__device__ int b() { return 1; }")
    program = make_program(
        '#include "a.cuh"\n__global__ void k(int* x) { *x = a(); }', "k", options=("-I", str(folder))
    )
    dependencies = compiler.compile_program(program).dependencies
    files = (folder / "a.cuh", folder / "deep" / "b.cuh")
    read = tuple((path, digest) for path, digest in dependencies or () if digest)
    assert read == tuple((str(file), hashlib.sha256(file.read_bytes()).hexdigest()) for file in files)


def test_headers_of_ours_and_given_ones_are_no_dependencies(make_program: MakeProgram) -> None:
    headers = (("given.cuh", "#include <gridstride/fixed_width.h>\n#define VALUE 3\n"),)
    program = make_program(
        '#include "given.cuh"\n__global__ void k() {}', "k", headers=headers, constants=("VALUE",)
    )
    code = compiler.compile_program(program)
    assert (code.dependencies, code.constants) == ((), {"VALUE": 3})


def test_headers_beside_a_file_are_found(make_program: MakeProgram, tmp_path: Path) -> None:
    (tmp_path / "beside.h").write_text("enum { beside = 7 };")
    path = tmp_path / "kernel.cu"
    path.write_text('#include "beside.h"\n')
    code = compiler.compile_program(make_program(path.read_text(), path=str(path), constants=("beside",)))
    assert code.constants == {"beside": 7}
    assert [name for name, _ in code.dependencies or ()] == [str(tmp_path / "beside.h")]


def test_a_kernel_in_a_header_has_a_signature_with_names(make_program: MakeProgram) -> None:
    headers = (
        ("kernels.cuh", "template <class T> __global__ void fill(T* out, T value) { *out = value; }\n"),
    )
    code = compiler.compile_program(make_program("#include <kernels.cuh>", "fill<int>", headers=headers))
    assert [parameter.name for parameter in code.functions["fill<int>"].signature or ()] == ["out", "value"]


def test_headers_to_include_leave_the_lines_alone(make_program: MakeProgram) -> None:
    headers = (("first.cuh", "typedef float real;\n\n\n"),)
    text = "__global__ void k(real* x) {\n    wrong();\n}"
    lines, _ = _message(make_program, text, "k", headers=headers, includes=("first.cuh",))
    assert lines[1].startswith("test.cu:2:5: error: ")


@pytest.mark.parametrize("name", ["../out.cuh", "/tmp/out.cuh"])
def test_given_headers_stay_in_their_folder(make_program: MakeProgram, name: str) -> None:
    lines, _ = _message(make_program, SAXPY, "saxpy", headers=((name, ""),))
    assert lines == [f"test: the header name {name!r} leaves the folder of headers"]


def test_a_shared_declaration_in_a_macro_or_branch(make_program: MakeProgram) -> None:
    text = """
    #define TILE(T, n) __shared__ T tile[n]
    #ifdef USE_BIG
    extern __shared__ double work[];
    #else
    extern __shared__ float work[];
    #endif
    __global__ void k(float* x) { TILE(float, 4); tile[0] = work[0]; x[0] = tile[0]; }
    """
    assert set(compiler.compile_program(make_program(text, "k")).functions) == {"k"}


def test_the_fingerprint_names_compiler_flags_and_options(
    make_program: MakeProgram, cpu_target: CpuTarget
) -> None:
    plain, exact = (make_program(SAXPY, options=options) for options in ((), ("--fmad=false",)))
    first = cpu_target.fingerprint(plain, "")
    assert toolchain.find_toolchain().version in first
    assert first == cpu_target.fingerprint(plain, "") != cpu_target.fingerprint(exact, "")


def test_equal_programs_give_equal_bytes(make_program: MakeProgram) -> None:
    first, second = (compiler.compile_program(make_program(SAXPY, "saxpy")).code for _ in range(2))
    assert first == second
    assert os.fsencode(tempfile.gettempdir()) not in first
