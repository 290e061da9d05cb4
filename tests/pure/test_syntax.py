"""Declarations and names read from CUDA C++ texts."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from gridstride import _syntax

TEXT = """
#define KERNEL extern "C" __global__
#define QUIET static __device__ __forceinline__
struct __align__(16) Point { float a; __device__ int get() const { return 1; } };
namespace a { namespace b::c {
__device__ int g, h[3];
__constant__ float taps[3] = {1, 2, 3};
template <typename T, int M>
__global__ __launch_bounds__(M * 2, 3) void f(const T* __restrict__ x, unsigned long long n = 5, int* const*) {}
} }
KERNEL void __launch_bounds__(256) k(float* x, const int n, Point s, complex<float> c, bool, void (*fp)(int)) {
    printf("__global__ void no(int) {}"); // __global__ void neither(int) {}
}
extern "C" {
__global__ void twice(int declared);
QUIET float* helper(float v[], int) { return v; }
__global__ void twice(int defined) { }
__device__ __managed__ double m;
extern __shared__ float shared[];
}
__global__ void __cluster_dims__(2, 1, 1) nothing(void) {}
template <> __global__ void f<int>(int) {}
"""


def _kernel(name: str, text: str = TEXT) -> _syntax.KernelDeclaration:
    return next(kernel for kernel in _syntax.kernels(text) if kernel.name == name)


def test_kernels_are_found_once_with_their_scopes() -> None:
    assert [kernel.name for kernel in _syntax.kernels(TEXT)] == [
        "a::b::c::f",
        "k",
        "twice",
        "nothing",
        "f<int>",
    ]


def test_names_of_parameters_come_from_the_definition() -> None:
    assert _kernel("twice").parameters == (_syntax.ParameterDeclaration("defined", "int"),)


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        ("a::b::c::f", [("x", "const T*"), ("n", "unsigned long long"), ("", "int* const*")]),
        (
            "k",
            [
                ("x", "float*"),
                ("n", "const int"),
                ("s", "Point"),
                ("c", "complex<float>"),
                ("", "bool"),
                ("fp", "void (*)(int)"),
            ],
        ),
        ("nothing", []),
    ],
)
def test_parameters_are_given_as_written(kernel: str, expected: list[tuple[str, str]]) -> None:
    assert [(parameter.name, parameter.type) for parameter in _kernel(kernel).parameters] == expected


def test_launch_bounds_lines_and_templates() -> None:
    found = {
        kernel.name: (kernel.line, kernel.launch_bounds, kernel.is_template)
        for kernel in _syntax.kernels(TEXT)
    }
    assert found["a::b::c::f"] == (9, "M * 2", True)
    assert found["k"] == (11, "256", False)
    assert found["nothing"] == (21, "", False)


def test_functions_that_are_no_kernels_are_told_apart() -> None:
    others = [function.name for function in _syntax.functions(TEXT) if not function.is_kernel]
    assert others == ["Point::get", "helper"]


@pytest.mark.parametrize(
    ("before", "is_ordinary"),
    [
        ("void", True),
        ('extern "C" void', True),
        ('int other; extern "C" {\nstatic inline void', True),
        ("__host__ EXPORT __device__ void", True),
        ("/* __global__ */ void", True),
        ("__global__ void", False),
        ("void __global__", False),
        ("#define ENTRY __global__\nENTRY void", False),
        ("#ifdef CUDA\n__global__\n#endif\nvoid", False),
        # What a header defines may be anything.
        ('ENTRY extern "C" void', False),
        ("void other() {}\nENTRY(256)\nvoid", False),
        ("template <class T>\nvoid", False),
    ],
)
def test_functions_that_can_be_no_kernels(before: str, is_ordinary: bool) -> None:
    *_, function = _syntax.functions(f"{before} f(int* x) {{ *x = 1; }}")
    assert (function.name, function.is_ordinary) == ("f", is_ordinary)


def test_variables_in_device_memory() -> None:
    found = [(variable.name, variable.kind) for variable in _syntax.globals_(TEXT)]
    assert found == [
        ("a::b::c::g", "device"),
        ("a::b::c::h", "device"),
        ("a::b::c::taps", "constant"),
        ("m", "managed"),
    ]


def test_the_first_declaration_of_a_text_counts() -> None:
    assert [variable.name for variable in _syntax.globals_("__device__ float table[8];\nint after;")] == [
        "table"
    ]
    assert [kernel.name for kernel in _syntax.kernels("__global__ void k() {}")] == ["k"]


def test_text_outside_ascii_keeps_positions() -> None:
    text = "// größer als ∞\n__global__ void später(int a) {}\n__global__ void k(int b) {}"
    assert _kernel("k", text).line == 3
    body = _kernel("k", text).body
    assert text.encode()[body[0] : body[1]] == b"{}"


def test_raw_strings_and_digit_separators_hide_nothing() -> None:
    text = """__device__ const char* s = R"(" __global__ void no() {} )";
    __global__ void k(int n) { int x = 1'000'000; char c = '"'; }
    __global__ void l(int n) { }"""
    assert [kernel.name for kernel in _syntax.kernels(text)] == ["k", "l"]


def test_parsing_is_safe_in_threads() -> None:
    texts = [TEXT + f"__global__ void extra{index}() {{}}" for index in range(64)]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda text: _syntax.kernels(text)[-1].name, texts))
    assert found == [f"extra{index}" for index in range(64)]


@pytest.mark.parametrize(
    "spellings",
    [
        ("f<complex<double> >", " f< complex<double>>", "f<complex<double>>", "::f<complex<double >>"),
        (
            "f<unsigned>",
            "f<unsigned int>",
            "f< int unsigned >",
            "f<uint32_t>",
            "f<std::uint32_t>",
            "f<::uint32_t>",
        ),
        ("f<long long>", "f<signed long long int>", "f<int64_t>"),
        ("f<unsigned long>", "f<long unsigned int>", "f<size_t>"),
        ("f<const float*>", "f<float const *>", "f<const float *>"),
        ("f<short>", "f<signed short int>", "f<int16_t>"),
        ("ns::f<Point, 3>", "ns::f<struct Point,3>", " ns :: f<Point , 3>"),
        ("&counter", "counter", "::counter"),
    ],
)
def test_spellings_of_one_name_are_equal(spellings: tuple[str, ...]) -> None:
    assert len({_syntax.normalize_name(spelling) for spelling in spellings}) == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("f<int>", "f<unsigned>"),
        ("f<long>", "f<long long>"),
        ("f<char>", "f<signed char>"),
        ("f<const float*>", "f<float*>"),
        ("f<float* const>", "f<const float*>"),
        ("a::f", "f"),
    ],
)
def test_different_names_stay_different(one: str, other: str) -> None:
    assert _syntax.normalize_name(one) != _syntax.normalize_name(other)


def test_base_name_has_no_template_arguments() -> None:
    assert _syntax.base_name("&ns::f<vector<int>, 3>") == "ns::f"
