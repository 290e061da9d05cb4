"""The standard headers that kernels may include, the same on every target."""

from __future__ import annotations

import numpy as np
import pytest

import gridstride as gs

T = np.arange(64)
TYPES = """
struct A { int a, b; __device__ int operator()(int v) const { return v; } };
struct B : A {};
struct Abstract { __device__ virtual int f() = 0; };
enum class E : unsigned char { x };
struct Empty {};
union Either { int i; float f; };
"""
TRAITS = """
is_same_v<conditional_t<true, int, float>, int>
is_base_of_v<A, B> && is_convertible_v<int, double> && !is_convertible_v<A, int>
!is_pointer_v<int> && is_pointer_v<int* const> && is_null_pointer_v<decltype(nullptr)>
is_enum_v<E> && is_class_v<A> && is_union_v<Either> && is_empty_v<Empty> && is_abstract_v<Abstract>
is_polymorphic_v<Abstract> && !is_polymorphic_v<A> && !is_final_v<A> && is_aggregate_v<A>
is_function_v<int(int)> && is_member_pointer_v<int A::*> && is_object_v<int> && !is_object_v<int&>
is_lvalue_reference_v<int&> && is_rvalue_reference_v<int&&> && !is_rvalue_reference_v<int>
is_fundamental_v<void> && is_compound_v<int*> && is_scalar_v<int*> && is_scalar_v<E> && is_trivial_v<A>
is_constructible_v<A> && is_default_constructible_v<A> && is_copy_constructible_v<A> && is_move_constructible_v<A>
is_assignable_v<int&, int> && !is_assignable_v<int, int> && !is_constructible_v<A, A*>
is_same_v<underlying_type_t<E>, unsigned char> && is_same_v<decay_t<const int(&)[3]>, const int*>
is_same_v<common_type_t<int, double>, double> && is_same_v<common_type_t<char, short, long long>, long long>
is_same_v<add_lvalue_reference_t<int>, int&> && is_same_v<add_lvalue_reference_t<void>, void>
is_same_v<add_rvalue_reference_t<int>, int&&> && is_same_v<type_identity_t<int>, int>
extent_v<int[4]> == 4 && extent_v<int[2][3], 1> == 3 && extent_v<int> == 0 && rank_v<int[2][3]> == 2
alignment_of_v<double> == 8 && is_invocable_v<A, int> && !is_invocable_v<A, A>
is_same_v<invoke_result_t<A, int>, int> && is_same_v<make_unsigned_t<long>, unsigned long>
conjunction_v<true_type, is_integral<int>> && !conjunction_v<true_type, false_type> && conjunction_v<>
disjunction_v<false_type, true_type> && !disjunction_v<> && negation_v<false_type>
numeric_limits<float>::max_digits10 == 9 && numeric_limits<double>::max_digits10 == 17
numeric_limits<float>::max_exponent10 == 38 && !numeric_limits<int>::is_iec559
""".strip().splitlines()


def run(xp, headers: str, body: str, std: str = "c++17", dtype: str = "int32") -> np.ndarray:
    includes = "\n".join(f"#include <{header}>" for header in headers.split())
    code = f"""{includes}{TYPES}
    extern "C" __global__ void k(int* out) {{ int t = threadIdx.x, r = 0; {body} out[t] = r; }}"""
    out = xp.zeros(64, dtype)
    gs.RawKernel(code, "k", options=(f"--std={std}",))((1,), (64,), (out,))
    return gs.asnumpy(out)


def test_traits_of_types(xp):
    asserts = "\n".join(f'static_assert({trait}, "");' for trait in TRAITS)
    assert not run(xp, "type_traits limits", f"using namespace std; {asserts}").any()


def test_pairs_and_sequences(xp):
    body = """
    std::pair<int, int> p = std::make_pair(t, 2);
    r += p.first + std::exchange(p.second, 5) + p.second + std::as_const(t);
    r += (p == std::make_pair(t, 5)) + (p != p) + (p < std::make_pair(t, 6));
    int a[2] = {1, 2}, b[2] = {t, 4};
    std::swap(a, b);
    r += a[0] + b[1];
    auto sum = [](auto... v) { return (v + ... + 0); };
    auto all = [&](auto f, auto sequence) {
        return [&]<int... I>(std::integer_sequence<int, I...>) { return f((I * I)...); }(sequence); };
    r += all(sum, std::make_integer_sequence<int, 9>{});
    static_assert(std::make_index_sequence<300>::size() == 300, "");
    static_assert(std::is_same_v<std::index_sequence_for<int, float>, std::index_sequence<0, 1>>, "");"""
    expected = T + 2 + 5 + T + 1 + 0 + 1 + T + 2 + sum(i * i for i in range(9))
    np.testing.assert_array_equal(run(xp, "utility", body, "c++20"), expected)


@pytest.mark.parametrize("std", ["c++14", "c++17"])
def test_arrays(xp, std):
    body = """
    std::array<int, 3> a{{t, 2, 3}}, b{};
    for (int v : a) r += v;
    b.fill(7);
    a.swap(b);
    r += a.size() + a[1] + a.front() * 10 + b.back() * 100 + *b.data() + std::get<1>(b);
    r += (a == b) + (a != b) + a.empty();
    constexpr std::array<float, 2> c{{1, 2}};
    static_assert(c.size() == 2, "");
    r += (int)c[1];"""
    np.testing.assert_array_equal(run(xp, "array", body, std), T + 5 + 3 + 7 + 70 + 300 + T + 2 + 1 + 2)


def test_operators_as_objects(xp):
    body = """
    r += std::plus<int>()(t, 2) + std::minus<>()(t, 1) + std::multiplies<>()(2, t) + std::divides<float>()(1, 2) * 4;
    r += std::modulus<int>()(t, 3) + std::negate<>()(t) + std::bit_xor<int>()(t, 5) + std::bit_not<int>()(t);
    r += std::less<int>{}(t, 5) * 1000 + std::greater_equal<>{}(t, 60) * 2000 + std::logical_not<>()(t) * 4000;"""
    expected = (T + 2) + (T - 1) + 2 * T + 2 + T % 3 - T + (T ^ 5) + ~T
    expected += (T < 5) * 1000 + (T >= 60) * 2000 + (T == 0) * 4000
    np.testing.assert_array_equal(run(xp, "functional", body), expected)


def test_least_and_greatest(xp):
    body = """
    r += std::max({t, 5, 30}) + std::min({t, 5}) * 100;
    r += std::max(t, 9, [](int a, int b) { return a % 10 < b % 10; }) * 10000;"""
    other = np.where(T % 10 < 9, 9, T)
    np.testing.assert_array_equal(
        run(xp, "algorithm", body), np.maximum(T, 30) + np.minimum(T, 5) * 100 + other * 10000
    )


def test_concepts(xp):
    body = """
    static_assert(std::integral<int> && std::floating_point<float> && std::signed_integral<int>);
    static_assert(std::unsigned_integral<unsigned> && !std::integral<float> && std::same_as<int, int>);
    static_assert(std::convertible_to<int, double> && std::derived_from<B, A> && !std::derived_from<A, B>);
    static_assert(std::invocable<A, int> && !std::invocable<A, A> && std::predicate<A, int>);
    static_assert(std::equality_comparable<int> && !std::equality_comparable<A> && std::totally_ordered<float>);
    static_assert(std::copy_constructible<A> && std::default_initializable<A> && std::assignable_from<int&, int>);
    auto twice = [](std::integral auto v) { return 2 * v; };
    r = twice(t);"""
    np.testing.assert_array_equal(run(xp, "concepts", body, "c++20"), 2 * T)


def test_bits(xp):
    body = """
    unsigned u = t * 2654435761u;
    unsigned char c = t;
    r = std::popcount(u) + std::countl_zero(c) * 100 + std::countr_zero(c) * 10000;
    r += std::bit_width(c) * 1000000 + std::has_single_bit(c) * 50;
    if (std::rotl(u, t) != ((u << t % 32) | (u >> (32 - t % 32) % 32))) r = -1;
    if (std::rotr(u, t) != std::rotl(u, -t) || std::rotl(std::rotr(c, t), t) != c) r = -2;
    if (std::bit_ceil(c) < c || std::bit_floor(c) > c || std::bit_cast<int>(1.0f) != 0x3f800000) r = -3;
    static_assert(std::bit_ceil(5u) == 8 && std::bit_floor(5u) == 4 && std::bit_ceil(0u) == 1);
    static_assert(std::endian::native == std::endian::little && std::countl_one(0xf0000000u) == 4);"""
    u = (T.astype(np.uint64) * 2654435761 % 2**32).tolist()
    expected = [
        bin(v).count("1") + (8 - t.bit_length()) * 100 + (8 if t == 0 else (t & -t).bit_length() - 1) * 10000
        + t.bit_length() * 1000000 + (bin(t).count("1") == 1) * 50
        for t, v in enumerate(u)
    ]  # fmt: skip
    np.testing.assert_array_equal(run(xp, "bit", body, "c++20"), expected)
