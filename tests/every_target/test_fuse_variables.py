"""Values of fused functions that change in place: copies, views and the same array under two names."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gridstride as gs

X = np.arange(6.0) - 2
K = np.arange(6) - 2


def check(function: Callable[..., Any], *arguments: Any) -> None:
    """Compare a fused function with itself."""
    expected, found = function(*arguments), gs.fuse(function, kernel_name="fused")(*arguments)
    for got, wanted in zip(
        *(each if isinstance(each, tuple) else (each,) for each in (found, expected)), strict=True
    ):
        assert (got.dtype, np.shape(got)) == (wanted.dtype, np.shape(wanted))
        np.testing.assert_array_equal(got, wanted)


def test_a_reduction_is_of_what_an_array_was() -> None:
    def total(a: Any) -> Any:
        t = a + 1
        result = t.sum()
        t += 1
        return result

    assert gs.fuse(total)(np.arange(6)) == 21
    check(total, X)


#: What gives a copy in NumPy, and what gives the same array or a view.
COPIES: dict[str, Callable[[Any], Any]] = {
    "round": np.round, "method": lambda t: t.round(2), "around": np.around, "clip": lambda t: np.clip(t, None, None),
    "conj": np.conj, "positive": np.positive, "astype": lambda t: t.astype(t.dtype), "nan_to_num": np.nan_to_num,
    "trunc": np.trunc, "copy": np.copy, "copy.copy": copy.copy, "deepcopy": copy.deepcopy,
}  # fmt: skip
SAME: dict[str, Callable[[Any], Any]] = {
    "real": np.real, "attribute": lambda t: t.real, "conj method": lambda t: t.conj(),
    "astype without a copy": lambda t: t.astype(t.dtype, copy=False),
    "function": lambda t: np.astype(t, t.dtype, copy=False),
}  # fmt: skip


@pytest.mark.parametrize("what", [*COPIES, *SAME])
def test_copies_are_copies_and_nothing_else_is(what: str) -> None:
    call = {**COPIES, **SAME}[what]

    def changed(a: Any) -> Any:
        t = a + 1
        r = call(t)
        r += 1
        return t, r

    check(changed, K)
    check(changed, X)


@pytest.mark.parametrize("what", COPIES)
def test_copies_of_arguments_change(what: str) -> None:
    def changed(a: Any) -> Any:
        r = COPIES[what](a)
        r += 1
        return r

    check(changed, K)


def test_numbers_of_booleans_are_copies() -> None:
    def changed(a: Any) -> Any:
        t = ~a
        r = np.nan_to_num(t)
        r |= True
        return t, r

    check(changed, X > 0)


def test_parts_of_complex_numbers_are_views() -> None:
    z = X + 1j * X[::-1]

    def written(a: Any) -> Any:
        t = a * 1
        r, i = t.real, np.imag(t)
        r += 1
        i *= 2
        return t, r, i

    def read(a: Any) -> Any:
        t = a * 1
        r = t.real
        t *= 2j
        return r, r + 1, t

    check(written, z)
    check(read, z)
    with pytest.raises(TypeError, match="a change in place of the argument `a`"):
        gs.fuse(lambda a: np.add(a.real, 1, out=a.real))(z)


def test_a_change_in_place_does_not_grow_an_array(xp: Any) -> None:
    @gs.fuse(kernel_name="grown")
    def grown(a: Any, b: Any) -> Any:
        t = a * 2
        t += b
        return t

    row, matrix = xp.arange(3.0), xp.ones((2, 3))
    assert gs.asnumpy(grown(matrix, row)).tolist() == [[2, 3, 4], [2, 3, 4]]
    for small in (row, row[None]):
        with pytest.raises(
            ValueError,
            match=r"`grown`: a change in place of an array of shape .* by what has shape \(2, 3\): a .*, b \(2, 3\):"
            r" write t = t .*\(test_fuse_variables.py, line \d+: t \+= b\)",
        ):
            grown(small, matrix)
    assert gs.asnumpy(grown(row, row)).tolist() == [0, 3, 6]


def test_an_array_that_is_written_keeps_its_shape() -> None:
    def written(a: Any, b: Any) -> Any:
        t = b * 2
        np.add(a, 1, out=t)
        return t

    check(written, np.arange(3.0), np.ones((2, 3)))


def test_what_has_no_axes_is_a_value_in_numpy() -> None:
    def changed(a: Any, b: Any) -> Any:
        t = a * 2
        same = t
        t += b
        return same, t

    check(changed, np.ones((), np.float32), np.ones(()))
    check(changed, np.ones((), np.float32), np.ones((2, 3)))
    check(changed, np.ones(3, np.float32), np.ones(()))


def test_functions_of_several_results_are_written() -> None:
    def parts(a: Any) -> Any:
        t, u = a * 1, a * 1
        np.modf(a, out=(t, u))
        v = a * 1
        same, rest = np.divmod(a, 2, out=(v, None))
        return t, u, v, same, rest

    check(parts, X / 4)
    with pytest.raises(TypeError, match=r"modf\(\) of float64 into an array of int64"):
        gs.fuse(lambda a, k: np.modf(a, out=(k + 1, None)))(X, K)


def test_functions_are_written_where_a_condition_holds() -> None:
    def quotients(a: Any, b: Any, p: Any) -> Any:
        result = np.full_like(a, -1)
        same = np.divide(a, b, out=result, where=b != 0)
        np.add(result, 0.5, out=result, where=p > 2)
        part = result * 1j
        np.subtract(part.imag, a, out=part.imag, where=a > b)
        return result, same, part

    def divided(a: Any, mask: Any) -> Any:
        whole, rest = np.zeros_like(a), np.ones_like(a)
        np.divmod(a, 2, out=(whole, rest), where=mask)
        return whole, rest, np.power(a, a, out=a * 1, where=a >= 0)

    for p in (1.0, 3.0):
        check(quotients, X, X[::-1] - 1, p)
    check(divided, X, X > 0)
    check(divided, K, False)
    check(divided, K.astype(np.float32), np.True_)


def test_conditions_of_functions_that_leave_elements_undefined_are_refused() -> None:
    with pytest.raises(
        TypeError, match=r"add\(\) with where and without out.*write np.where\(condition, add"
    ):
        gs.fuse(lambda a: np.add(a, 1, where=a > 0))(X)
    with pytest.raises(TypeError, match=r"add\(\) with where that is no boolean: write where=condition != 0"):
        gs.fuse(lambda a: np.add(a, 1, out=a * 1, where=a))(X)
    with pytest.raises(ValueError, match="a change in place of an array of shape"):
        gs.fuse(lambda a, mask: np.add(a, 1, out=a * 1, where=mask))(X, np.ones((2, 1), bool))
    with pytest.raises(TypeError, match=r"sum\(\) with where: write sum\(where\(condition, x, ...\)\)"):
        gs.fuse(lambda a: np.sum(a, where=a > 0))(X)
