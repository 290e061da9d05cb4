"""The expressions of reductions: which are statements, and how they stand in a text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from gridstride import _dtypes
from gridstride._source.assignments import behind_macros, statements
from gridstride._source.elementwise import section
from gridstride._syntax.words import without_comments, words

if TYPE_CHECKING:
    from gridstride._source.reduction import ReductionSource

_BEGINS_STATEMENT = re.compile(r"\s*(?:\{|(?:if|for|while|do|switch|return)\b)")
_INFINITY = re.compile(r"([+-]?)\s*(?:INFINITY|HUGE_VALF?)")

#: What is asked of types in which values are folded.
IS_MADE = (
    'static_assert(gridstride::is_made<_type_reduce>::value, "values wait in memory before there are any: '
    'give the type a constructor without arguments, such as S() = default;");'
)


def assigns(text: str, names: Iterable[str]) -> bool:
    """Return whether an expression mentions one of the outputs, which it can only do to assign it."""
    return not words(without_comments(text)).isdisjoint(names)


def assigns_by_macros(text: str, names: Iterable[str], preambles: str, options: Sequence[str]) -> bool:
    """Return whether macros of preambles or options mention one of the outputs in a text."""
    return not behind_macros(words(without_comments(text)), preambles, options).isdisjoint(names)


def is_statement(text: str) -> bool:
    """Return whether a text is more than an expression."""
    plain = without_comments(text)
    return len(list(statements(plain))) > 1 or _BEGINS_STATEMENT.match(plain) is not None


def expression_of(text: str) -> str:
    """Return a text without the semicolon of the one expression that it is."""
    plain = without_comments(text)
    _, *rest = [*statements(plain), ""]
    if rest != ["", ""]:
        return text
    end = plain.rindex(";")
    return f"{text[:end]} {text[end + 1 :]}"


def statement_of(source: ReductionSource) -> str:
    """Return the post-map as a statement."""
    text, outputs = source.post_map_expr, [parameter.name for parameter in source.declaration.outputs]
    return text if is_statement(text) or assigns(text, outputs) else f"{outputs[0]} = {text}"


def post_lines(source: ReductionSource) -> str:
    """Return the post-map as lines that assign the outputs."""
    name, text = source.declaration.name, source.post_map_expr
    label = f"post_map_expr of {name}"
    outputs = source.declaration.outputs
    if is_statement(text) or assigns(text, [parameter.name for parameter in outputs]):
        return section(label, text, ";")
    result = outputs[0]
    return f"{result.name} = gridstride::value_of<{result.ctype}>::from(\n{section(label, text)}\n);"


def identity_lines(source: ReductionSource, reduce_type: str) -> str:
    """Return the identity as lines of the type in which values are folded; "" where there is none."""
    if not source.identity:
        return ""
    text = section(f"identity of {source.declaration.name}", _within(source.identity, reduce_type))
    return f"gridstride::value_of<_type_reduce>::from(\n{text}\n)"


def _within(identity: str, reduce_type: str) -> str:
    """Return an identity with the limit of an integer type in the place of an infinity.

    C++ leaves open what becomes of it: on a GPU the lowest bits of a wider integer's limit.
    """
    infinity, dtype = _INFINITY.fullmatch(identity), _dtypes.dtype_of_ctype(reduce_type)
    if infinity is None or dtype is None or dtype.kind not in "iu":
        return identity
    limits = np.iinfo(dtype)
    return spelled_integer(int(limits.min if infinity[1] == "-" else limits.max))


def spelled_integer(number: int) -> str:
    """Return an integer in C++, as a double where it has more than 64 bits."""
    if number == -(2**63):  # no literal: its sign stands before one that is too large
        return f"({number + 1}ll - 1)"
    if not -(2**63) < number < 2**64:
        return repr(float(number))
    return f"{number}ull" if number >= 2**63 else str(number)
