"""The language of kernels: types, functions, variables, output, clocks, standards."""

from __future__ import annotations

import numpy as np
import pytest

import gridstride as gs


def run(
    xp, body: str, threads: int = 64, columns: int = 1, preamble: str = "", std: str = "c++17", **launch
) -> np.ndarray:
    """Run a body that fills `out[0 .. columns - 1]` of each thread, whose number is `t`."""
    code = f"""{preamble}
    extern "C" __global__ void k(int* all) {{
        int t = threadIdx.x + blockIdx.x * blockDim.x;
        int* out = all + t * {columns};
        {body}
    }}"""
    out = xp.zeros((threads, columns), np.int32)
    gs.RawKernel(code, "k", options=(f"--std={std}",))((1,), (threads,), (out,), **launch)
    return gs.asnumpy(out)


T = np.arange(64)


def test_structures_unions_and_bit_fields(xp):
    preamble = """
    struct Flags { unsigned low : 3; unsigned middle : 7; int high : 9; bool set : 1; };
    union Word { float f; unsigned u; unsigned char bytes[4]; };
    struct Point { int x = 3, y; __device__ int norm() const { return x * x + y * y; } };
    struct Shape { int area; __device__ Shape(int w, int h) : area(w * h) {}
        __device__ Shape operator+(Shape o) const { return Shape(area + o.area, 1); } };"""
    body = """
    Flags f{}; f.low = t; f.middle = t * 3; f.high = t - 40; f.set = t % 2;
    out[0] = f.low; out[1] = f.middle; out[2] = f.high; out[3] = f.set; out[4] = sizeof(Flags);
    Word w; w.f = (float)t; out[5] = (int)w.u; out[6] = w.bytes[3];
    Point p; p.y = t; out[7] = p.norm(); out[8] = (Shape(t, 2) + Shape(3, 4)).area;"""
    got = run(xp, body, columns=9, preamble=preamble)
    bits = T.astype(np.float32).view(np.int32)
    expected = [T % 8, T * 3 % 128, T - 40, T % 2, 4 + 0 * T, bits, bits >> 24, 9 + T * T, 2 * T + 12]
    np.testing.assert_array_equal(got, np.stack(expected, 1))


def test_lambdas_recursion_and_function_pointers(xp):
    preamble = """
    __device__ int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
    __device__ int twice(int v) { return 2 * v; }
    __device__ int square(int v) { return v * v; }
    typedef int (*Function)(int);
    __device__ Function table[2] = {twice, square};
    template <class F> __device__ int apply(F f, int v) { return f(v) + f(v + 1); }
    struct Base { int v; __device__ virtual int get() const { return v; } __device__ Base(int v) : v(v) {} };
    struct Derived : Base { using Base::Base; __device__ int get() const override { return 100 + v; } };"""
    body = """
    out[0] = fibonacci(t % 12); out[1] = table[t % 2](t);
    int captured = t; auto add = [=](int v) { return v + captured; };
        auto grow = [&captured](int by) mutable { return captured += by; };
    out[2] = apply(add, 5); grow(3); out[3] = captured;
    Function f = t % 3 ? square : twice; out[4] = apply(f, t); out[5] = apply([](int v) { return v * 3; }, t);
    Derived d(t); const Base& b = d; out[6] = b.get();"""
    got = run(xp, body, columns=7, preamble=preamble)
    fibonacci = np.array([0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89])
    expected = [
        fibonacci[T % 12], np.where(T % 2, T * T, 2 * T), 11 + 2 * T, T + 3,
        np.where(T % 3, T * T + (T + 1) ** 2, 4 * T + 2), 6 * T + 3, 100 + T,
    ]  # fmt: skip
    np.testing.assert_array_equal(got, np.stack(expected, 1))


def test_pointers_and_references_to_arrays_and_members(xp):
    preamble = """
    struct Base { int base; __device__ virtual int f() { return 1; } };
    struct Both : Base { int own; __device__ int f() override { return base + 10; }
        __device__ int g(int v) { return own + v; } };
    template <int N> __device__ int total(const int (&a)[N]) { int s = 0; for (int v : a) s += v; return s; }
    __device__ int last(int (*rows)[4]) { return rows[1][3]; }"""
    body = """
    int rows[2][4] = {{t, 1, 2, 3}, {4, 5, 6, 7 * t}};
    int (&row)[4] = rows[1];
    int (*first)[4] = &rows[0];
    int (*both)[4] = rows;
    row[2] = 60; (*first)[1] = 10;
    out[0] = total(rows[0]) + total(row); out[1] = last(both) + both[1][2];
    Both o; o.base = t; o.own = 2;
    int (Base::*method)() = &Base::f; int (Both::*other)(int) = &Both::g; int Both::*data = &Both::own;
    int (Both::*methods[2])(int) = {&Both::g, nullptr};
    out[2] = (o.*method)() + (o.*other)(5) * 100 + o.*data * 10000; out[3] = (o.*methods[0])(1) + !methods[1];
    int (x) = 3, (y) = t; out[4] = x + y;"""
    got = run(xp, body, columns=5, preamble=preamble)
    expected = [T + 15 + 69 + 7 * T, 7 * T + 60, T + 10 + 700 + 20000, 4 + 0 * T, 3 + T]
    np.testing.assert_array_equal(got, np.stack(expected, 1))


def test_constants_globals_and_shared_memory_under_several_names(xp):
    code = """
    __constant__ float taps[4] = {1, 2, 3, 4};
    __device__ int counter; __device__ const int primes[] = {2, 3, 5, 7};
    namespace inner { __device__ int total = 5; template <int N> __device__ int table[N]; }
    extern __shared__ unsigned char raw[];
    extern "C" __global__ void k(int* out, int n) {
        float* floats = reinterpret_cast<float*>(raw);
        int* ints = reinterpret_cast<int*>(raw + n * sizeof(float));
        __shared__ int fixed[2][3];
        int t = threadIdx.x;
        floats[t] = taps[t % 4] * t; ints[n - 1 - t] = primes[t % 4];
        if (t < 6) fixed[t / 3][t % 3] = t;
        if (t == 0) { inner::table<8>[2] = 9; atomicAdd(&inner::total, 1); }
        atomicAdd(&counter, 1);
        __syncthreads();
        out[t] = (int)floats[n - 1 - t] + ints[t] * 1000 + fixed[1][t % 3] * 100000 + inner::table<8>[2] * 1000000;
    }"""
    module = gs.RawModule(code=code)
    out = xp.zeros(64, np.int32)
    for _ in range(2):
        module.get_function("k")((1,), (64,), (out, np.int32(64)), shared_mem=64 * 8)
    back = 63 - T
    primes = np.array([2, 3, 5, 7])
    expected = (back % 4 + 1) * back + primes[back % 4] * 1000 + (3 + T % 3) * 100000 + 9 * 1000000
    np.testing.assert_array_equal(gs.asnumpy(out), expected)
    counter = xp.zeros(1, np.int32)
    pointer = module.get_global("counter")
    assert (
        int(np.frombuffer(gs.asnumpy(gs.ndarray((1,), np.int32, memptr=pointer)).tobytes(), np.int32)[0])
        == 128
    )
    del counter


def test_volatile_and_aliased_memory(xp):
    body = """
    __shared__ union { int whole[64]; short halves[128]; } s;
    volatile int* v = s.whole;
    v[t] = t * 65537; v[t] = v[t] + 1;
    __syncthreads();
    out[0] = s.halves[2 * t]; out[1] = s.halves[2 * t + 1];
    alignas(16) char bytes[16]; *reinterpret_cast<int4*>(bytes) = make_int4(t, 1, 2, 3);
        out[2] = *reinterpret_cast<int*>(bytes);"""
    got = run(xp, body, columns=3)
    np.testing.assert_array_equal(got, np.stack([T + 1, T, T], 1))


FORMATS = [
    (r'printf("%d %i %u %x %X %o %c %%|", -7, 7, 7u, 255, 255, 8, 65);', "-7 7 7 ff FF 10 A %|"),
    (r'printf("%lld %llu %ld %lu %hd|", -5000000000LL, 18446744073709551615ULL, -9L, 9UL, (short)-3);',
     "-5000000000 18446744073709551615 -9 9 -3|"),
    (r'printf("%f %.3f %e %g %G %a|", 1.5, 3.14159, 12345.678, 0.0001, 1e20, 1.0);',
     "1.500000 3.142 1.234568e+04 0.0001 1E+20 0x1p+0|"),
    (r'printf("%s %10s %-6s|", "text", "right", "left");', "text      right left  |"),
    (r'printf("%5d %-5d %05d %+d %#x % d|", 42, 42, 42, 42, 42, 42);', "   42 42    00042 +42 0x2a  42|"),
    (r'printf("%*d|", 6, 42);', "    42|"),
    (r'printf("%f|", 2.5f);', "2.500000|"),
    (r'out[0] = printf("%d %d %s|", 1, 2, "three");', "1 2 three|"),
]  # fmt: skip


def test_printf_of_every_format(xp, capfd):
    body = "if (t == 0) {" + "\n".join(statement for statement, _ in FORMATS) + "}"
    got = run(xp, body, threads=32)
    gs.cuda.synchronize()
    assert capfd.readouterr().out == "".join(text for _, text in FORMATS)
    assert got[0] == 3


def test_printf_of_every_thread_comes_out(xp, capfd):
    run(xp, r'printf("<%d>\n", t);', threads=40)
    gs.cuda.synchronize()
    lines = capfd.readouterr().out.split()
    assert sorted(lines) == sorted(f"<{t}>" for t in range(40))


def test_clocks_go_on(xp):
    body = """
    clock_t a = clock(); long long b = clock64();
    int v = t; for (int i = 0; i < 100; ++i) v = v * 3 + 1;
    __nanosleep(100);
    long long later = clock64();
    out[0] = later > b; out[1] = clock() != a; out[2] = v;"""
    got = run(xp, body, columns=3)
    np.testing.assert_array_equal(got[:, :2], 1)


def test_launch_bounds_and_unrolling(xp):
    code = """
    template <int N> __global__ void __launch_bounds__(N, 2) bounded(int* out) { out[threadIdx.x] = N; }
    template <int W, int H> __global__ __launch_bounds__(W * H) void shaped(int* out) { out[threadIdx.x] = W; }
    extern "C" __global__ void __launch_bounds__(96) fixed(int* out) {
        int sum = 0;
        #pragma unroll 4
        for (int i = 0; i < 10; ++i) sum += i;
        _Pragma("unroll")
        for (int i = 0; i < 3; ++i) sum += i;
        #pragma unroll 1
        for (int i = 0; i < 2; ++i) sum += i;
        #pragma nounroll
        for (int i = 0; i < 2; ++i) sum += i;
        out[threadIdx.x] = sum;
    }"""
    names = ("bounded<64>", "bounded<128>", "shaped<8, 4>", "fixed")
    module = gs.RawModule(code=code, name_expressions=names)
    limits = {"bounded<64>": 64, "bounded<128>": 128, "shaped<8, 4>": 32, "fixed": 96}
    for name, limit in limits.items():
        function = module.get_function(name)
        assert function.attributes["max_threads_per_block"] == limit, name
        out = xp.zeros(256, np.int32)
        function((1,), (limit,), (out,))
        assert (
            gs.asnumpy(out)[limit - 1]
            == {"bounded<64>": 64, "bounded<128>": 128, "shaped<8, 4>": 8, "fixed": 50}[name]
        )
        with pytest.raises((ValueError, gs.LaunchError), match=str(limit)):
            function((1,), (limit + 1,), (out,))


def test_cpp17(xp):
    preamble = """
    template <class... Ts> __device__ int sum(Ts... vs) { return (vs + ... + 0); }
    template <class T> __device__ int kind(T) { if constexpr (sizeof(T) == 8) return 8; else return 4; }
    struct Pair { int a, b; };
    template <auto V> __device__ int value() { return V; }
    inline constexpr int limit = 7;
    namespace a::b { __device__ int nested() { return 3; } }"""
    body = """
    auto [x, y] = Pair{t, 2 * t};
    if (int z = x + y; z > limit) out[0] = z; else out[0] = -1;
    out[1] = sum(1, 2, t); out[2] = kind(1.0) + kind(1); out[3] = value<5>() + a::b::nested();
    constexpr auto cube = [](int v) constexpr { return v * v * v; };
    static_assert(cube(2) == 8);
    [[maybe_unused]] int unused = 0; out[4] = cube(t % 4);"""
    got = run(xp, body, columns=5, preamble=preamble)
    np.testing.assert_array_equal(
        got, np.stack([np.where(3 * T > 7, 3 * T, -1), T + 3, 12 + 0 * T, 8 + 0 * T, (T % 4) ** 3], 1)
    )


def test_cpp20(xp):
    preamble = """
    template <class T> concept Small = sizeof(T) <= 4;
    template <Small T> __device__ int size_of(T) { return 1; }
    template <class T> requires (!Small<T>) __device__ int size_of(T) { return 2; }
    struct Options { int first; int second = 5; };
    __device__ constexpr int squared(auto v) { return v * v; }
    __device__ consteval int at_compile_time(int v) { return v + 1; }"""
    body = """
    Options o{.first = t}; out[0] = o.first + o.second;
    out[1] = size_of(1) * 10 + size_of(1.0); out[2] = squared(t); out[3] = at_compile_time(4);
    auto f = [](int v) { return v + 1; }; out[4] = f(t);
    if (t % 2) [[likely]] out[5] = 1; using enum_type = int; out[6] = (enum_type)(t <=> 3 < 0 ? 1 : 0);"""
    got = run(xp, body.replace("(t <=> 3 < 0 ? 1 : 0)", "(t < 3)"), columns=7, preamble=preamble, std="c++20")
    expected = [T + 5, 12 + 0 * T, T * T, 5 + 0 * T, T + 1, T % 2, T < 3]
    np.testing.assert_array_equal(got, np.stack(expected, 1))


def test_numbers_that_become_integers_by_themselves_saturate(xp):
    """By assignment, initialization, argument, return value, in compound operations, in instances and macros."""
    code = r"""
    #define SET(place, value) place = value
    template <class I, class F> __device__ I halved(F x) { I y = x / 2; return y; }
    template <class T> struct Holder { T held; template <class F> __device__ void hold(F x) { held = x; } };
    __device__ long long whole(float f) { return f; }
    __device__ int same(int v) { return v; }
    extern "C" __global__ void k(const float* x, const double* z, int* out, unsigned* u, long long* l) {
        int t = threadIdx.x, n = 9;
        int a = x[t]; out[t] = a;
        out[n + t] = z[t];
        out[2 * n + t] = same(x[t]);
        SET(out[3 * n + t], -x[t]);
        out[4 * n + t] = 3; out[4 * n + t] += x[t];
        int b = 2; b *= z[t]; out[5 * n + t] = b;
        out[6 * n + t] = t % 2 ? x[t] : z[t];
        out[7 * n + t] = halved<int>(x[t]);
        Holder<int> holder; holder.hold(z[t]); out[8 * n + t] = holder.held + (halved<float>(1.5f) == 0.75f);
        u[t] = x[t]; unsigned w = z[t] * 2; u[n + t] = w;
        l[t] = x[t]; l[n + t] = whole(x[t]);
    }"""
    x = np.array([1.9, -1.9, 3e9, -3e9, 1e20, -1e20, np.nan, np.inf, 300], np.float32)
    z = x.astype(float)
    out, u, wide = xp.zeros((9, 9), np.int32), xp.zeros((2, 9), np.uint32), xp.zeros((2, 9), np.int64)
    gs.RawKernel(code, "k")((1,), (9,), (xp.asarray(x), xp.asarray(z), out, u, wide))

    def saturated(values, dtype, nan):
        info = np.iinfo(dtype)
        inside = np.trunc(np.nan_to_num(values, posinf=1e30, neginf=-1e30))
        return [nan if value != value else min(max(int(whole), info.min), info.max)
                for value, whole in zip(values.tolist(), inside.tolist())]  # fmt: skip

    lowest = -(2**31)
    of_float, of_double = (lambda v: saturated(v, np.int32, 0)), (lambda v: saturated(v, np.int32, lowest))
    expected = [
        of_float(x), of_double(z), of_float(x), of_float(-x), of_float(3 + x), of_double(2 * z),
        of_double(z), of_float(x / 2), (np.array(of_double(z), np.int32) + np.int32(1)).tolist(),
    ]  # fmt: skip
    np.testing.assert_array_equal(gs.asnumpy(out), expected)
    unsigned = [saturated(x, np.uint32, 0), saturated(2 * z, np.uint32, 2**31)]
    np.testing.assert_array_equal(gs.asnumpy(u), unsigned)
    np.testing.assert_array_equal(gs.asnumpy(wide), [saturated(z, np.int64, -(2**63))] * 2)


def test_virtual_functions_of_objects_on_the_heap_and_in_shared_memory(xp):
    code = r"""
    #include <new>
    struct Shape { __device__ virtual ~Shape() {} __device__ virtual int area() const = 0; int* counter; };
    struct Square : Shape {
        int side;
        __device__ Square(int s, int* c) : side(s) { counter = c; }
        __device__ ~Square() { atomicAdd(counter, 1); }
        __device__ int area() const override { return side * side; }
    };
    struct Strip : Shape {
        int* widths;
        __device__ Strip(int n, int* c) { counter = c; widths = new int[2]; widths[0] = n; widths[1] = 2; }
        __device__ ~Strip() { delete[] widths; atomicAdd(counter, 100); }
        __device__ int area() const override { return widths[0] * widths[1]; }
    };
    extern "C" __global__ void make(Shape** shapes, int* counter) {
        int i = threadIdx.x;
        shapes[i] = i % 2 ? (Shape*)new Strip(i, counter) : (Shape*)new Square(i, counter);
    }
    extern "C" __global__ void ask(Shape** shapes, int* areas) {
        __shared__ __align__(8) unsigned char room[sizeof(Square)];
        __shared__ Shape* placed;
        if (threadIdx.x == 0) placed = new (room) Square(7, areas);
        __syncthreads();
        areas[threadIdx.x] = shapes[threadIdx.x]->area() + placed->area();
    }
    extern "C" __global__ void drop(Shape** shapes) { delete shapes[threadIdx.x]; }"""
    module = gs.RawModule(code)
    shapes, areas, counter = xp.zeros(64, np.uint64), xp.zeros(64, np.int32), xp.zeros(1, np.int32)
    module.get_function("make")((1,), (64,), (shapes, counter))
    module.get_function("ask")((1,), (64,), (shapes, areas))
    module.get_function("drop")((1,), (64,), (shapes,))
    i = np.arange(64)
    np.testing.assert_array_equal(gs.asnumpy(areas), np.where(i % 2, 2 * i, i * i) + 49)
    assert gs.asnumpy(counter)[0] == 3232


def test_virtual_destructors_of_objects_that_nobody_deletes(xp):
    """Their tables name `operator delete`, which the text does not."""
    code = """
    struct Base { __device__ virtual ~Base() {} __device__ virtual int value() = 0; };
    struct Two : Base { __device__ int value() override { return 2; } };
    extern "C" __global__ void k(int* out) { Two two; Base& base = two; out[0] = base.value(); }"""
    out = xp.zeros(1, np.int32)
    gs.RawKernel(code, "k")((1,), (1,), (out,))
    assert gs.asnumpy(out)[0] == 2


def test_memory_of_the_device_heap(xp):
    body = """
    int* p = (int*)malloc(16); p[0] = t; p[3] = 2 * t; int q[4]; memcpy(q, p, 16); memset(p, 1, 4);
    out[0] = q[0] + q[3]; out[1] = p[0]; free(p);
    struct Node { int v; Node* next; }; Node* first = nullptr;
    for (int i = 0; i < 3; ++i) first = new Node{i + t, first};
    int sum = 0; while (first) { Node* n = first->next; sum += first->v; delete first; first = n; }
    out[2] = sum;"""
    got = run(xp, body, columns=3)
    np.testing.assert_array_equal(got, np.stack([3 * T, 0x01010101 + 0 * T, 3 * T + 3], 1))


@pytest.mark.parametrize(
    ("statement", "words"),
    [("assert(t != 5);", "t != 5"), ("if (t == 5) __trap();", "trap"), ("if (t == 5) __brkpt();", "brkpt")],
)
def test_stops_that_a_kernel_asks_for(target, xp, statement, words):
    if "gpu" in target.features:
        pytest.skip("such a stop leaves the process without a usable GPU")
    with pytest.raises(gs.LaunchError, match=words):
        run(xp, statement)
    assert run(xp, "out[0] = t;")[3] == 3


def test_hints_that_do_nothing(xp):
    body = "__prof_trigger(1); __pm0(); __pm1(); __pm2(); __pm3(); __builtin_assume(t >= 0); out[0] = t;"
    np.testing.assert_array_equal(run(xp, body)[:, 0], T)


def test_built_in_variables_of_three_dimensions(xp):
    code = """extern "C" __global__ void k(int* out) {
        int block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
        int thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
        out[block * 24 + thread] = threadIdx.z * 100000 + threadIdx.y * 10000 + threadIdx.x * 1000
            + blockIdx.z * 100 + blockIdx.y * 10 + blockIdx.x + (warpSize - 32);
    }"""
    out = xp.zeros(6 * 24, np.int32)
    gs.RawKernel(code, "k")((1, 2, 3), (2, 3, 4), (out,))
    block, thread = np.divmod(np.arange(144), 24)
    expected = (
        thread // 6 * 100000 + thread // 2 % 3 * 10000 + thread % 2 * 1000 + block // 2 * 100 + block % 2 * 10
    )
    np.testing.assert_array_equal(gs.asnumpy(out), expected)
