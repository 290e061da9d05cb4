"""Expressions that loops have something faster for: what a loop is handed in the place of the plain functions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from gridstride import _dtypes
from gridstride._source.extremes import PlacedExtreme, extreme_of, placed_extreme_of
from gridstride._source.types import Role, folded_ctype, kind_of
from gridstride._syntax.words import may_name, spaced
from gridstride.targets.walks import flag

if TYPE_CHECKING:
    from gridstride._source.reduction import ReductionForm, ReductionSource

#: In which sums lose what does not fit, in whatever order they are made.
_INTEGERS = frozenset(_dtypes.ctype_of_dtype(np.dtype(code)) for code in "bhilqBHILQ")

#: What is asked of truth values.
_OF_FLAGS = {
    f"{one}{sign}{other}": asked
    for sign, asked in (("||", "any"), ("|", "any"), ("&&", "all"), ("&", "all"))
    for one, other in (("a", "b"), ("b", "a"))
}

_FLOATS = frozenset(("float", "double"))


def may_ask_for(source: ReductionSource, *names: str) -> bool:
    """Return whether a text may ask for one of what maps are told besides elements, also by a macro."""
    text = " ".join((source.map_expr, source.preamble, source.type_preamble, *source.options))
    return may_name(text, *names)


def handed_map(source: ReductionSource, form: ReductionForm) -> str:
    """Return what a loop maps with: it is told where no text can ask for numbers of elements."""
    if not form.tells_numberless or may_ask_for(source, "i", "_J"):
        return "gridstride_map"
    return "gridstride::as_numberless(gridstride_map)"


def handed_reduce(
    source: ReductionSource, form: ReductionForm, inputs: Sequence[Role], reduce_type: str
) -> str:
    """Return what a loop folds with: it is told where it folds small integers as they are stored, or their places."""
    expression, reduce_type = "".join(source.reduce_expr.split()), _number_type(form, reduce_type)
    if form.joins_flags and reduce_type == "bool" and expression in _OF_FLAGS:
        return f"gridstride::as_flag_fold<{flag(_OF_FLAGS[expression] == 'any')}>(gridstride_reduce)"
    if len(inputs) != 1:
        return "gridstride_reduce"
    (only,) = inputs
    is_byte = only.stored.kind in "iu" and only.stored.itemsize == 1
    if (form.tells_places and is_byte) or (form.finds_places and _keeps_order(only, form)):
        return _reduce_with_places(source, only, bool(form.finds_places))
    mapped, name = _without_cast(source, reduce_type), only.parameter.name
    if only.stored == only.value and only.stored.kind == "b" and reduce_type == "bool":
        return _of_bytes(_OF_FLAGS.get(expression) if mapped in (name, f"{name} != 0") else None)
    is_integer = only.stored == only.value and only.stored.kind in "iu"
    if not is_integer or mapped != name:
        return "gridstride_reduce"
    is_small = only.stored.itemsize <= _largest_added(form, reduce_type)
    if is_small and expression in ("a+b", "b+a"):
        return "gridstride::as_integer_sum(gridstride_reduce)"
    if is_byte and reduce_type == folded_ctype(only.stored):
        extreme = extreme_of(
            source.reduce_expr, " ".join((source.preamble, source.type_preamble, *source.options))
        )
        return _of_bytes(extreme)
    return "gridstride_reduce"


def _without_cast(source: ReductionSource, reduce_type: str) -> str:
    """Return what is mapped, a space between tokens, without a cast to the type in which it is folded anyway."""
    mapped = spaced(source.map_expr).strip()
    for ctype in {reduce_type, source.reduce_type or reduce_type}:
        of = re.escape(spaced(ctype).strip())
        cast = re.fullmatch(rf"\( {of} \) (\w+|\( \w+ \))|(?:{of}|static_cast < {of} >) (\( \w+ \))", mapped)
        if cast:
            mapped = cast[1] or cast[2]
    return mapped.removeprefix("( ").removesuffix(" )") if re.fullmatch(r"\( \w+ \)", mapped) else mapped


def _number_type(form: ReductionForm, name: str) -> str:
    """Return the type of numbers that a call binds a name to, or the name."""
    dtype = dict(form.types).get(name)
    return name if dtype is None or dtype.names is not None else _dtypes.ctype_of_dtype(dtype)


def _of_bytes(kept: str | None) -> str:
    """Return the fold of bytes of which the largest or the smallest is kept; any flag is true where the largest is."""
    if kept is None:
        return "gridstride_reduce"
    return f"gridstride::as_byte_extreme<{flag(kept in ('largest', 'any'))}>(gridstride_reduce)"


def _largest_added(form: ReductionForm, reduce_type: str) -> int:
    """Return the bytes of the largest integers that a loop adds faster than others, to sums of a type."""
    return form.small_bytes * (reduce_type in _INTEGERS) or form.exact_bytes * (reduce_type in _FLOATS)


def _keeps_order(only: Role, form: ReductionForm) -> bool:
    """Return whether numbers compare in a text as they do where they are stored."""
    is_same = only.stored == only.value or only.parameter.ctype in form.widened
    return is_same and kind_of(only.stored) in "iuf"


def keeps_places(source: ReductionSource, inputs: Sequence[Role]) -> bool:
    """Return whether what is kept of numbers is the largest or the smallest one and its place."""
    return (
        len(inputs) == 1
        and kind_of(inputs[0].stored) in "iuf"
        and inputs[0].stored == inputs[0].value
        and _placed_extreme(source, inputs[0]) is not None
    )


@lru_cache(maxsize=256)
def _placed_extreme(source: ReductionSource, only: Role) -> PlacedExtreme | None:
    if source.type_preamble or source.options or source.identity or source.reduce_type is None:
        return None
    return placed_extreme_of(
        source.preamble,
        source.map_expr,
        source.reduce_expr,
        only.parameter.name,
        only.parameter.ctype,
        source.reduce_type,
        only.stored.kind in "iu" and only.stored.itemsize <= 2,
    )


def _reduce_with_places(source: ReductionSource, only: Role, finds_places: bool) -> str:
    kept = _placed_extreme(source, only)
    if kept is None:
        return "gridstride_reduce"
    which = f"{flag(kept.is_largest)}, {flag(kept.is_first)}"
    if finds_places:
        return f"gridstride::as_found_extreme<{which}, {only.ctype}>(gridstride_map, gridstride_reduce)"
    ranked = f"gridstride::ranked_bytes<{only.stored_ctype}, {which}>"
    return f"gridstride::as_placed_extreme<{ranked}, {only.ctype}>(gridstride_map, gridstride_reduce)"
