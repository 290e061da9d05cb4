"""Texts as files and people make them: the host compiler and NVRTC read them alike, or refuse them with the place."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

import gridstride as gs
from gridstride.errors import CompileError
from gridstride.targets.base import ObjectCode, Program
from gridstride.targets.options import parse_options

KERNEL = 'extern "C" __global__ void k(int* x) { x[0] = VALUE; }\n'
Compile = Callable[..., ObjectCode]


@pytest.fixture(params=["host compiler", "nvrtc"])
def compile_text(request: pytest.FixtureRequest) -> Compile:
    """Compile a text for the CPU, or for NVIDIA's devices, which need not be there."""
    name = "cpu" if request.param == "host compiler" else "cuda"

    def compile_with(text: str, *options: str, **fields: object) -> ObjectCode:
        fields = {"kernels": ("k",), **fields}
        return compile_(Program(text, "test", parse_options(options, target=name), **fields))  # type: ignore[arg-type]

    if name == "cpu":
        from gridstride.targets.cpu.compiler import compile_program as compile_
    else:
        from gridstride.targets.cuda import nvrtc
        from gridstride.targets.cuda.compiler import Compiler

        found = nvrtc.find()
        if found is None:
            pytest.skip("there is no NVRTC")

        def compile_(program: Program) -> ObjectCode:
            return Compiler(found).compile(program, "sm_90")

    return compile_with


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of headers whose name a shell or a compiler's own listing could stumble over."""
    folder = tmp_path / """it's "a" $folder #1"""
    (folder / "directory").mkdir(parents=True)
    (folder / "crlf.h").write_bytes(b"#define SUM 2 + \\\r\n 3\r\n#define VALUE SUM\r\n")
    (folder / "latin.h").write_bytes(b"// caf\xe9\n#define VALUE 5\n")
    (folder / "wrong.h").write_text(
        "// one\n\n__device__ int in_header() { return nothing; }\n#define VALUE 1\n"
    )
    (folder / "first.h").write_text('#include "second.h"\n')
    (folder / "second.h").write_text('#include "first.h"\n')
    return folder


VALUE_5 = {
    "carriage returns": "#define SUM 2 + \\\r\n 3\r\n#define VALUE SUM\r\n" + KERNEL.replace("\n", "\r\n"),
    "a header with carriage returns": '#include "crlf.h"\n' + KERNEL,
    "a header in Latin-1": '#include "latin.h"\n' + KERNEL,
    "a computed include": '#define HEADER "crlf.h"\n#include HEADER\n' + KERNEL,
    "trigraphs, which are none": "#define VALUE 5 // really??/\n" + KERNEL,
    "digraphs": "%:define VALUE 5\n" + KERNEL.replace("{", "<%").replace("}", "%>"),
    "a long line": "// " + "x" * 20000 + "\n#define VALUE 5\n" + KERNEL,
    "no end of the last line": "#define VALUE 5\n" + KERNEL + "#define LAST",
    "an escaped end": "#define VALUE 5\n" + KERNEL + "// \\",
    "form feeds": "\f\v#define VALUE 5\n\f" + KERNEL,
    "other letters in comments and strings": '// größe ☃\n__device__ const char* s = "größe ☃";\n#define VALUE 5\n'
    + KERNEL,
    "deep parentheses": KERNEL.replace("VALUE", "(" * 1000 + "5" + ")" * 1000),
}


@pytest.mark.parametrize("name", VALUE_5)
def test_what_every_compiler_reads(compile_text: Compile, folder: Path, name: str) -> None:
    code = compile_text(
        VALUE_5[name], "-I", str(folder), constants=("VALUE",) if "VALUE" in VALUE_5[name] else ("5",)
    )
    assert set(code.constants.values()) == {5}
    assert "k" in code.functions


OK = KERNEL.replace("VALUE", "0")
WRONG = "__device__ int y = nothing;"
REFUSED = {
    # text; file, line and part of the source line that the message shows
    "a macro": ("#define BAD(a) a + nothing\n\n__device__ int y() { return\n  BAD(1); }", "test.cu", 4, "BAD(1);"),
    "a macro of several lines": (
        "#define BAD(a) { \\\n  a = nothing; \\\n}\n\n__device__ void f(int x) {\n  BAD(x);\n}",
        "test.cu", 6, "BAD(x);",
    ),
    "a header": ('#include "wrong.h"\n' + KERNEL, "wrong.h", 3, "return nothing;"),
    "a line directive": ("\n#line 50\n" + OK + WRONG, "test.cu", 51, WRONG),
    "a line directive with a file": ('#line 100 "other.cu"\n' + OK + WRONG, "other.cu", 101, WRONG),
    "a line directive and shared memory": (
        "\n#line 50\n__global__ void k(int* x) { __shared__ int s[2], t; s[0] = t;\n    nothing(1); }",
        "test.cu", 51, "nothing(1); }",
    ),
    "a missing header": ("\n#include <no/such.h>\n" + OK, "test.cu", 2, "#include <no/such.h>"),
    "a folder as a header": ('#include "directory"\n' + OK, "test.cu", 1, '#include "directory"'),
    "an empty include": ('#include ""\n' + OK, "test.cu", 1, '#include ""'),
    "an include without end": ('#include "abc\n' + OK, "test.cu", 1, '#include "abc'),
    "headers in a cycle": ('#include "first.h"\n' + OK, "", 1, "#include"),
    "a comment without end": (OK + "/* abc", "test.cu", 2, "/* abc"),
    "a condition without end": (OK + "#if 1\n", "test.cu", 2, "#if 1"),
    "a brace that is not closed": (OK.replace("}", ""), "test.cu", 1, "x[0] = 0;"),
    "a brace too many": (OK + "}\n", "test.cu", 2, "}"),
    "an error directive": ('\n#error "mine"\n' + OK, "test.cu", 2, '#error "mine"'),
    "a failed assertion": ('\nstatic_assert(sizeof(int) == 5, "five");\n' + OK, "test.cu", 2, "static_assert"),
    "a long line": (OK + "int a = " + "1 + " * 1000 + "nothing;", "test.cu", 2, "1 + 1"),
    "templates without end": (
        "template <int N> struct F { static const int v = F<N + 1>::v; };\nconst int a = F<0>::v;\n" + OK,
        "test.cu", 1, "F<N + 1>::v",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_errors_show_the_users_line(compile_text: Compile, folder: Path, name: str) -> None:
    text, file, line, shown = REFUSED[name]
    with pytest.raises(CompileError) as caught:
        compile_text(text, "-I", str(folder))
    error, message = caught.value, str(caught.value)
    assert f"{file}:{line}:" in message or f"{file}({line}):" in message
    assert shown in message
    assert len(message) < 3000
    assert error.source == text
    assert error.numbered_source.splitlines()[0].endswith(f"1 | {text.splitlines()[0]}")
    assert f"{folder}" in " ".join(shlex.split(error.command))
    assert error.log


def test_a_huge_log_is_a_short_message(compile_text: Compile) -> None:
    doubling = "".join(f"#define M{i} M{i - 1} M{i - 1}\n" for i in range(1, 13))
    with pytest.raises(CompileError) as caught:
        compile_text(doubling + "#define M0 nothing;\n__global__ void k(int* x) {\n  M12\n}\n")
    assert len(str(caught.value)) < 3000
    assert "M12" in str(caught.value)


# ---- what no compiler reads alike is refused before ----


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("// one\n// \0 two\n" + KERNEL, "code, line 2: a NUL character"),
        ("// one\n" + KERNEL + "// \ud800", r"code, line 3: '\\ud800' is no character"),
    ],
)
def test_characters_that_no_source_may_have(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        gs.RawKernel(text, "k")
    with pytest.raises(ValueError, match=words):
        gs.RawModule(code=text)
    with pytest.raises(ValueError, match=words.replace("code", "header 'h.h'")):
        gs.RawKernel(KERNEL, "k", headers={"h.h": text})


def test_an_option_with_a_nul_is_refused(target) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ValueError, match="NUL"):
        gs.RawKernel(KERNEL, "k", options=("-DVALUE=1\0",)).compile()


def test_the_mark_that_editors_put_first_is_left_out(target, xp, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    text = '\ufeff#include "value.h"\n' + KERNEL
    x = xp.zeros(1, "int32")
    gs.RawKernel(text, "k", headers={"value.h": "\ufeff#define VALUE 7\n"})((1,), (1,), (x,))
    assert int(x[0]) == 7
    path = tmp_path / "kernel.cu"
    path.write_bytes(b"\xef\xbb\xbf// caf\xc3\xa9\n" + KERNEL.replace("VALUE", "8").encode())
    gs.RawModule(path=path).get_function("k")((1,), (1,), (x,))
    assert int(x[0]) == 8
    path.write_bytes(b"// caf\xe9\n" + KERNEL.replace("VALUE", "9").encode())
    gs.RawModule(path=path).get_function("k")((1,), (1,), (x,))
    assert int(x[0]) == 9


# ---- what was read is known ----


def test_a_header_that_appears_in_front_of_another_is_read(compile_text: Compile, tmp_path: Path) -> None:
    front, back = tmp_path / "front", tmp_path / "back"
    front.mkdir()
    back.mkdir()
    (back / "value.h").write_text("#define VALUE 3\n")
    options = ("-I", str(front), "-I", str(back))
    code = compile_text("#include <value.h>\n" + KERNEL, *options, constants=("VALUE",))
    assert (str(front / "value.h"), "") in (code.dependencies or ())
    assert str(back / "value.h") in dict(code.dependencies or ())
    (front / "value.h").write_text("#define VALUE 4\n")
    assert compile_text("#include <value.h>\n" + KERNEL, *options, constants=("VALUE",)).constants == {
        "VALUE": 4
    }


def test_headers_of_a_system_header_are_dependencies(compile_text: Compile, tmp_path: Path) -> None:
    (tmp_path / "system.h").write_text('#pragma GCC system_header\n#include "inner.h"\n')
    (tmp_path / "inner.h").write_text("#define VALUE 3\n")
    code = compile_text("#include <system.h>\n" + KERNEL, "-I", str(tmp_path))
    assert {str(tmp_path / "system.h"), str(tmp_path / "inner.h")} <= set(dict(code.dependencies or ()))


def test_a_text_that_asks_for_headers_has_unknown_dependencies(compile_text: Compile, tmp_path: Path) -> None:
    text = '#if __has_include("absent.h")\n#include "absent.h"\n#else\n#define VALUE 1\n#endif\n' + KERNEL
    assert compile_text(text, "-I", str(tmp_path)).dependencies is None
