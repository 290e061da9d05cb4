"""Numbers as people write them on a command line: ``1e6``, ``1<<20``, ``rows*cols``, ``x.size``."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable
from typing import Any

Number = bool | int | float | complex

_WORDS = {"true": True, "false": False, "inf": math.inf, "nan": math.nan, "pi": math.pi}
_OPERATORS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
}
#: The most that a number is raised to or shifted by: more fits in no type.
_LARGEST_POWER = 1100


def evaluate(text: str, lookup: Callable[[str], Any]) -> Number:
    """Return the value of an expression of numbers, names, ``NAME.size`` and ``NAME.shape[K]``.

    Parameters
    ----------
    text : str
    lookup : callable
        Returns a name's number or array; ValueError for an unknown one.

    Raises
    ------
    ValueError
        The text is no such expression.
    """
    try:
        value = _value(ast.parse(text.strip(), mode="eval").body, lookup)
    except SyntaxError:
        raise ValueError(f"{text!r} is no number") from None
    except (ArithmeticError, TypeError) as error:
        raise ValueError(f"{text!r} has no value: {error}") from None
    if not isinstance(value, int | float | complex):
        raise ValueError(f"{text!r} is an array; a number of it is {text}.size or {text}.shape[0]")
    return value


def whole(number: Number) -> Number:
    """Return a number as an int where it is a whole one: people write 1e6 for a million."""
    return int(number) if isinstance(number, float) and number.is_integer() else number


def _value(node: ast.expr, lookup: Callable[[str], Any]) -> Any:
    match node:
        case ast.Constant(value=bool() | int() | float() | complex() as value):
            return value
        case ast.Name(id=name):
            return _WORDS[name.lower()] if name.lower() in _WORDS else lookup(name)
        case ast.UnaryOp(op=op, operand=operand) if type(op) in _OPERATORS:
            return _OPERATORS[type(op)](_value(operand, lookup))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            first, second = _value(left, lookup), _value(right, lookup)
            if isinstance(op, ast.Pow | ast.LShift) and abs(second) > _LARGEST_POWER:
                raise OverflowError(f"{second} is beyond {_LARGEST_POWER}")
            return _OPERATORS[type(op)](first, second)
        case ast.Attribute(value=ast.Name(id=name), attr="size" | "ndim" | "shape" as attribute):
            return _attribute(name, attribute, lookup)
        case ast.Subscript(value=ast.Attribute(attr="shape") as shape, slice=index):
            return _entry(_value(shape, lookup), _value(index, lookup))
    raise ValueError(f"{ast.unparse(node)!r} is no number")


def _attribute(name: str, attribute: str, lookup: Callable[[str], Any]) -> Any:
    array = lookup(name)
    if not hasattr(array, attribute):
        raise ValueError(f"{name} is no array, so it has no {attribute}")
    return getattr(array, attribute)


def _entry(shape: tuple[int, ...], index: Any) -> int:
    try:
        return int(shape[index])
    except (IndexError, TypeError):
        raise ValueError(f"there is no shape[{index}] in {shape}") from None
