"""Which of two values a text keeps: the larger or the smaller one, or structures by a number and its place."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import product, starmap
from typing import NamedTuple, TypeAlias

from gridstride._syntax.words import spaced

#: The larger or the smaller of a and b, without spaces.
_CHOICE = re.compile(r"\(?([ab])([<>]=?)([ab])\)?\?([ab]):([ab])")
_CALLED = re.compile(r"(max|min)\(([ab]),([ab])\)")

_STRUCTURE = re.compile(r"struct (\w+) { ([\w ]+?) (\w+) ; long long (\w+) ; } ; ")
_FUNCTION = re.compile(
    r"(?:(?:__device__|__host__|__forceinline__|inline|static|constexpr) )*(\w+) (\w+) "
    r"\( (?:const )?(\w+) (?:const )?(?:& )?(\w+) , (?:const )?(\w+) (?:const )?(?:& )?(\w+) \) { return (.*) ; } "
)
_SIGNS: dict[str, frozenset[int]] = {
    "<": frozenset({-1}), ">": frozenset({1}), "==": frozenset({0}),
    "<=": frozenset({-1, 0}), ">=": frozenset({0, 1}), "!=": frozenset({-1, 1}),
}  # fmt: skip
#: How the numbers of two structures compare, and their places: as -1, 0 or 1.
_Outcomes: TypeAlias = frozenset[tuple[int, int]]
_ALL: _Outcomes = frozenset(product((-1, 0, 1), (-1, 0, 1)))


class PlacedExtreme(NamedTuple):
    """Say which of structures of a number and its place is kept.

    Attributes
    ----------
    is_largest : bool
        Whether it has the largest number, else the smallest.
    is_first : bool
        Whether it has the first place of equal ones, else the last.
    """

    is_largest: bool
    is_first: bool


def extreme_of(text: str, around: str = "") -> str | None:
    """Return "largest" or "smallest" for an expression that keeps that one of a and b, given the text around it."""
    text = "".join(text.split())
    called = _CALLED.fullmatch(text)
    if called is not None:
        name, *both = called.groups()
        may_be_own = any(each in around for each in (name, "include", "##"))
        return None if may_be_own or set(both) != {"a", "b"} else {"max": "largest", "min": "smallest"}[name]
    found = _CHOICE.fullmatch(text)
    if found is None:
        return None
    left, sign, right, first, second = found.groups()
    if {left, right} != {"a", "b"} or {first, second} != {"a", "b"}:
        return None
    return "largest" if (sign[0] == ">") == (left == first) else "smallest"


def placed_extreme_of(
    preamble: str,
    map_expr: str,
    reduce_expr: str,
    element: str,
    ctype: str,
    reduce_type: str,
    fits_int: bool = True,
) -> PlacedExtreme | None:
    """Return what a text keeps that folds structures of an element and its place, of which it declares nothing else.

    Parameters
    ----------
    preamble, map_expr, reduce_expr : str
    element, ctype : str
        The name of the input, and what its type is called.
    reduce_type : str
    fits_int : bool
        Whether an int holds every element.
    """
    declared, mapped, reduced = (spaced(each) for each in (preamble, map_expr, reduce_expr))
    structure = _STRUCTURE.match(declared)
    if (
        structure is None
        or structure[1] != reduce_type
        or structure[2] not in (ctype, "int" if fits_int else ctype)
    ):
        return None
    if mapped != f"{reduce_type} {{ {element} , _J }} " or structure[3] == structure[4]:
        return None
    names, declared = ("a", "b"), declared[structure.end() :]
    if declared:
        function = _FUNCTION.fullmatch(declared)
        if function is None or {function[1], function[3], function[5]} != {reduce_type}:
            return None
        names = function[4], function[6]
        if reduced != f"{function[2]} ( a , b ) ":
            return None
        reduced = function[7] + " "
    try:
        return _kept(_choices(reduced.split(), names, {structure[3]: 0, structure[4]: 1}))
    except (LookupError, ValueError):
        return None


def _kept(first: _Outcomes) -> PlacedExtreme | None:
    """Return what is kept where the first of two is in these outcomes: two elements have different places."""
    for kept in starmap(PlacedExtreme, product((True, False), (True, False))):
        number, place = (1 if kept.is_largest else -1), (-1 if kept.is_first else 1)
        if {each for each in first if each != (0, 0)} == {
            each for each in _ALL if each[0] == number or each == (0, place)
        }:
            return kept
    return None


def _choices(tokens: list[str], names: tuple[str, str], members: Mapping[str, int]) -> _Outcomes:
    """Return in which outcomes ``condition ? a : b`` is the first of two; raise where it is not understood."""
    *condition, mark, chosen, colon, other = tokens
    if (mark, colon) != ("?", ":") or {chosen, other} != set(names) or names[0] == names[1]:
        raise ValueError
    outcomes = _Condition(condition, names, members).outcomes()
    return outcomes if chosen == names[0] else _ALL - outcomes


class _Condition:
    """Comparisons of the same members of two structures, joined by `&&`, `||` and `!`."""

    def __init__(self, tokens: list[str], names: tuple[str, str], members: Mapping[str, int]) -> None:
        self._tokens = [*tokens, ""][::-1]
        self._names = names
        self._members = members

    def outcomes(self) -> _Outcomes:
        """Return in which outcomes the condition holds; raise where it is not understood."""
        found = self._either()
        self._take("")
        return found

    def _either(self) -> _Outcomes:
        found = self._both()
        while self._tokens[-1] == "||":
            self._take("||")
            found |= self._both()
        return found

    def _both(self) -> _Outcomes:
        found = self._one()
        while self._tokens[-1] == "&&":
            self._take("&&")
            found &= self._one()
        return found

    def _one(self) -> _Outcomes:
        is_not = self._tokens[-1] == "!"
        if is_not:
            self._take("!")
        elif self._tokens[-1] != "(":
            return self._comparison()
        self._take("(")
        found = self._either()
        self._take(")")
        return _ALL - found if is_not else found

    def _comparison(self) -> _Outcomes:
        left, member = self._member()
        sign = _SIGNS[self._tokens.pop()]
        right, other = self._member()
        if {left, right} != set(self._names) or member != other:
            raise ValueError
        direction = 1 if left == self._names[0] else -1
        return frozenset(each for each in _ALL if each[member] * direction in sign)

    def _member(self) -> tuple[str, int]:
        name = self._tokens.pop()
        self._take(".")
        return name, self._members[self._tokens.pop()]

    def _take(self, token: str) -> None:
        if self._tokens.pop() != token:
            raise ValueError
