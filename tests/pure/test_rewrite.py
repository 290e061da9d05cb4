"""The source pass of the CPU target on texts that need no compiler."""

from __future__ import annotations

import re

import pytest

from gridstride.targets.cpu import rewrite
from gridstride.targets.cpu.edits import Refusal


def _rewritten(text: str, *kernels: str) -> str:
    result = rewrite.rewrite(text.encode(), kernels).text.decode()
    assert result.count("\n") == text.count("\n"), "the lines must stay the user's"
    assert "__shared__" not in result
    return result


def _references(text: str) -> dict[str, str]:
    """Return the typedef text of every reference that the pass made, by variable name."""
    result = _rewritten(text)
    return {
        name: " ".join(re.search(rf"typedef ([^;]*\bgridstride_type_{number}\b[^;]*);", result)[1].split())
        for number, name in re.findall(r"gridstride_type_(\d+)& (\w+) = gridstride_\w*shared<", result)
    }


@pytest.mark.parametrize(
    ("declaration", "expected"),
    [
        ("__shared__ float tile[32][33];", {"tile": "float gridstride_type_1[32][33]"}),
        ("extern __shared__ float tile[];", {"tile": "float gridstride_type_1[]"}),
        ("extern __shared__ double tile[][4];", {"tile": "double gridstride_type_1[][4]"}),
        ("volatile __shared__ int tile[8];", {"tile": "volatile int gridstride_type_1[8]"}),
        ("__shared__ volatile int tile[8];", {"tile": "volatile int gridstride_type_1[8]"}),
        ("static __shared__ int tile;", {"tile": "int gridstride_type_1"}),
        ("__shared__ unsigned long long tile;", {"tile": "unsigned long long gridstride_type_1"}),
        ("__shared__ typename A<T>::B tile;", {"tile": "typename A<T>::B gridstride_type_1"}),
        ("__shared__ A<T, 3> tile[N + 1];", {"tile": "A<T, 3> gridstride_type_1[N + 1]"}),
        ("__shared__ float (*tile)[3];", {"tile": "float (*gridstride_type_1)[3]"}),
        ("__shared__ char tile['z' - 'a'];", {"tile": "char gridstride_type_1['z' - 'a']"}),
        ("float __shared__ tile[4];", {"tile": "float gridstride_type_1[4]"}),
        ("__shared__ float tile[4] /* a; b */;", {"tile": "float gridstride_type_1[4]"}),
        ("__shared__\n  float\n tile[4];", {"tile": "float gridstride_type_1[4]"}),
        (
            "__shared__ int a, *b, c[3];",
            dict.fromkeys("abc", "int gridstride_type_1, *gridstride_type_2, gridstride_type_3[3]"),
        ),
    ],
)
def test_declarations_become_references(declaration: str, expected: dict[str, str]) -> None:
    text = f"template <class T, int N> __global__ void k() {{ int before; {declaration} int after; }}"
    found = _references(text)
    assert found.keys() == expected.keys()
    for name, typedef in expected.items():
        assert found[name].startswith(typedef)


@pytest.mark.parametrize(
    "declaration",
    [
        "__shared__ __align__(16) float tile[4];",
        "__align__(16) __shared__ float tile[4];",
        "__shared__ float __align__(16) tile[4];",
        "alignas(16) __shared__ float tile[4];",
        "__shared__ __attribute__((aligned(16))) float tile[4];",
    ],
)
def test_alignment_moves_to_the_tag(declaration: str) -> None:
    result = _rewritten(f"__global__ void k() {{ {declaration} }}")
    assert re.search(
        r"struct (?:__align__\(16\)|alignas\(16\)|__attribute__\(\(aligned\(16\)\)\)) gridstride_tag_1",
        result,
    )
    assert re.search(r"typedef +float +gridstride_type_1\[4\];", result)


def test_a_type_may_be_defined_in_the_declaration() -> None:
    result = _rewritten("__global__ void k() { __shared__ struct { int a; float b; } pair; }")
    assert "typedef struct { int a; float b; } gridstride_type_1; " in " ".join(result.split())
    assert "gridstride_type_1& pair = gridstride_shared<" in result


def test_dynamic_shared_memory_has_no_place_of_its_own() -> None:
    result = _rewritten("__global__ void k() { extern __shared__ __align__(8) unsigned char raw[]; }")
    assert "gridstride_dynamic_shared<gridstride_type_1>()" in result
    assert "gridstride_tag" not in result


def test_variables_know_their_number_and_kernel() -> None:
    text = (
        "namespace a { void f() { __shared__ int x, y; } } void g() { __shared__ int z; } __shared__ int w;"
    )
    assert re.findall(r'return "(.*?)";', _rewritten(text, "a::f")) == ["1 a::f", "2 a::f", "3 ", "4 "]


@pytest.mark.parametrize(
    "function",
    [
        "template <class T> struct S {{ operator T*() {{ {0} }} }};",
        "template <class T> struct S {{ operator const T*() const {{ {0} }} }};",
        "struct S {{ S() : a(1) {{ {0} }} int a; }};",
        "struct S {{ ~S() {{ {0} }} }};",
        "struct S {{ int operator()(int i) const {{ {0} }} }};",
        "auto f() -> int {{ {0} }}",
        "int& f() {{ {0} }}",
        "auto f = [] __device__ (int x) {{ {0} }};",
        "template <class T> void S<T>::f() const noexcept {{ {0} }}",
        "__global__ void k() {{ auto f = [&](int x) {{ {0} }}; f(1); }}",
        "__global__ void k() {{ struct Local {{ __device__ void f() {{ {0} }} }}; }}",
        "__global__ void k() {{ switch (1) {{ case 1: {{ {0} }} }} }}",
    ],
)
def test_variables_stay_in_whatever_body_declares_them(function: str) -> None:
    result = _rewritten(
        "int before;\n" + function.format("__shared__ int x; x = 1;") + "\nvoid after() { int x; }"
    )
    assert re.search(r"typedef +int gridstride_type_1; .* gridstride_type_1& x = [^;]*; x = 1;", result)
    assert result.count("gridstride_type_1& ") == 1


def test_variables_of_namespace_scope_reach_the_functions_that_name_them() -> None:
    text = """extern __shared__ float dynamic[];
__shared__ int count, bins[256];
#define FIRST dynamic[0]
__global__ void a() { dynamic[0] = 1; }
__device__ void b(int count) { bins[0] = count; }
__device__ int c() { int unrelated = 0; return unrelated; }
struct S { __device__ float get() { return FIRST; } };
"""
    lines = _rewritten(text).splitlines()
    assert re.findall(r"& (\w+) = gridstride", lines[3]) == ["dynamic"]
    assert re.findall(r"& (\w+) = gridstride", lines[4]) == ["bins"]
    assert lines[5] == text.splitlines()[5]
    assert re.findall(r"& (\w+) = gridstride", lines[6]) == ["dynamic"]


def test_variables_of_a_namespace_stay_in_it() -> None:
    text = "namespace a { __shared__ int x; void f() { x = 1; } namespace b { void g() { x = 2; } } }\n"
    text += "void h(S s) { s.x = 3; }"
    lines = _rewritten(text).splitlines()
    assert lines[0].count("gridstride_type_1& x = ") == 2
    assert lines[1] == text.splitlines()[1]


def test_a_local_variable_may_hide_one_of_namespace_scope() -> None:
    result = _rewritten("__shared__ int x;\n__global__ void k() { int x = 1; }")
    assert re.search(r"\{ gridstride_type_1& x = [^;]*; \{ int x = 1; \}\}", result)


@pytest.mark.parametrize(
    "text",
    [
        "__global__ void k() { int shared = 0; }",
        "// __shared__ float x;\n__global__ void k() {}",
        'const char* s = "__shared__ float x;";',
        "/* __shared__ */ int x;",
    ],
)
def test_other_texts_stay_as_they_are(text: str) -> None:
    assert rewrite.rewrite(text.encode(), ()).text.decode() == text


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("__shared__ int x = 3;", "cannot be initialized"),
        ("__shared__ int x(3);", "cannot be initialized"),
        ("__shared__ float& x;", "not understood"),
        ("__shared__ struct S { int a; };", "not understood"),
        (
            'asm volatile("mma.sync.aligned.m16n8k8.row.col.f32 {%0}, {%1};" : "=f"(x) : "r"(y));',
            "inline PTX: mma.sync",
        ),
        ('asm("add.u32 %0, %1;" : "=r"(x) : "r"(y));', "inline PTX: add.u32 with 2 operands"),
        (
            'asm("addc.u32 %0, %1, %2;" : "=r"(x) : "r"(y), "r"(z));',
            "addc.u32 with the carry of another statement",
        ),
        ('asm("LOOP: bra LOOP;");', "inline PTX: 'LOOP: bra LOOP'"),
        ('asm("mov.f16 %0, %1;" : "=h"(x) : "h"(y));', "inline PTX: mov.f16"),
        ('asm("mov.u32 %0, %%envreg3;" : "=r"(x));', "inline PTX: the register %envreg3"),
        ("child<<<1, 32>>>(x);", "dynamic parallelism"),
        ("float v = tex2D<float>(t, 0, 0);", "texture"),
        ("cudaSurfaceObject_t s;", "surface"),
        ("__shared__ cuda::barrier<cuda::thread_scope_block> bar;", "cuda::barrier"),
        ("auto p = cuda::make_pipeline();", "cuda::pipeline"),
        ("cuda::memcpy_async(a, b, 4, bar);", "asynchronous copy"),
        ("auto c = cooperative_groups::this_cluster();", "cluster"),
        ("nvcuda::wmma::fragment<int> f;", "wmma"),
    ],
)
def test_what_cannot_run_is_refused_where_it_stands(statement: str, message: str) -> None:
    text = f"__global__ void k(int* x) {{\n    int before;\n    {statement}\n}}".encode()
    with pytest.raises(Refusal, match=message) as caught:
        rewrite.rewrite(text, ())
    assert text.count(b"\n", 0, caught.value.position) == 2


@pytest.mark.parametrize(
    ("text", "needed"),
    [
        ("#define N 16\n__global__ void k() { __shared__ int x[N]; }", False),
        ("__global__ void k() { }", False),
        ("#if A\n#endif\n__global__ void k() { }", False),
        ("__global__ void k() {\n#if A\n __shared__ int x;\n#endif\n}", True),
        ("#define TILE(n) __shared__ float tile[n]\n__global__ void k() { TILE(3); }", True),
        ('#define LANE asm("")\n__global__ void k() { }', True),
        ("#ifdef __CUDA_ARCH__\n#else\n f<<<1, 2>>>();\n#endif", True),
        ('__global__ void k() { printf("<<<"); } // asm', False),
    ],
)
def test_the_preprocessor_runs_only_where_it_decides(text: str, needed: bool) -> None:
    assert rewrite.needs_preprocessing(text.encode()) is needed


def test_positions_lead_back_to_the_users_text() -> None:
    source = b"__global__ void k() { __shared__ int x; int middle; __shared__ int y[2]; int last; }"
    result = rewrite.rewrite(source, ())
    for word in (b"global", b"middle", b"last"):
        assert source[result.origin(result.text.index(word)) :].startswith(word)
    inside = result.origin(result.text.index(b"gridstride_tag_2"))
    assert source[inside:].startswith(b"__shared__ int y")


@pytest.mark.parametrize(
    ("cast", "call"),
    [
        ("(int)x", "gridstride_cast<int>(x)"),
        ("(unsigned char) (x * 2)", "gridstride_cast<unsigned char>((x * 2))"),
        ("(std::uint32_t)-x", "gridstride_cast<std::uint32_t>(-x)"),
        ("static_cast<long long>(x)", "gridstride_cast<long long>(x)"),
        ("int(x)", "gridstride_cast<int>(x)"),
        ("int64_t(x)", "gridstride_cast<int64_t>(x)"),
        ("unsigned(x) + short(y)", "gridstride_cast<unsigned>(x) + gridstride_cast<short>(y)"),
        ("f(x) + S(y)", None),
        ("(int)p[0].x + 1", "gridstride_cast<int>(p[0].x) + 1"),
        ("(int)x < y && z > (w)", "gridstride_cast<int>(x) < y && z > (w)"),
        ("(int)s.x < y || z > (w)", "gridstride_cast<int>(s.x) < y || z > (w)"),
        ("(int)x < y && (int)z >= 0", "gridstride_cast<int>(x) < y && gridstride_cast<int>(z) >= 0"),
        ("(int)f<int, 3>(y)", "gridstride_cast<int>(f<int, 3>(y))"),
        ("(float)(int)(double)(short)x", "(float)gridstride_cast<int>((double)gridstride_cast<short>(x))"),
        ("(float)x", None),
        ("(bool)x", None),
        ("(int*)p", None),
        ("(S)x", None),
        ("(n) - 1", None),
        ("sizeof(int) * n", None),
        ("static_cast<float>(x)", None),
        ("float(x)", None),
    ],
)
def test_casts_to_integers_become_calls(cast: str, call: str | None) -> None:
    text = "__global__ void k() {{ auto y = {0}; }} int outside = (int)3.5f; // (int)x"
    assert _rewritten(text.format(cast)) == text.format(call or cast)


@pytest.mark.parametrize(
    "declaration",
    [
        "int (&row)[4] = rows[0];", "int (*row)[4] = &rows[0];", "int (*rows)[4];", "short (x) = 3;", "int (x), y = 2;",
        "int (C::*member)() = &C::f;", "int (C::*member) = &C::b;", "int (C::*const members[2])() = {};",
        "long (&&row)[2] = f();", "int (*f)(int) = g;", "for (int (i) = 0; i < 3; ++i) {}", "int (f)(int);",
        "use(sizeof(int (C::*)()));",
    ],
)  # fmt: skip
def test_declarations_in_parentheses_are_no_casts(declaration: str) -> None:
    text = f"__device__ void f() {{ {declaration} }}"
    assert rewrite.rewrite(text.encode(), set()).text.decode() == text


def test_casts_over_lines_and_beside_shared_variables() -> None:
    text = "void f() {\n  __shared__ float s[(int)4.0f]; int y = (long\n    long)\n  x; wrong; }"
    result = rewrite.rewrite(text.encode(), ())
    assert result.text.count(b"\n") == text.count("\n")
    assert b"[(int)4.0f]" in result.text
    assert text.encode()[result.origin(result.text.index(b"wrong")) :].startswith(b"wrong")
