"""Integer expressions that are linear in the index along x, as the flat tier needs them.

An index such as ``y * w + x`` is computed in int and may wrap around, so compilers cannot know that
neighboring threads use neighboring elements. Such an expression is written twice: *exactly*, with
operations that notice whatever does not fit its C++ type, and *widely*, in 64 bits. Where the first says
at both ends of a row that everything fits, everything fits between, and the second is the same number.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from gridstride._syntax import normalize_name
from gridstride._syntax.parser import text_of

if TYPE_CHECKING:
    from tree_sitter import Node

_INTEGER_LITERAL = re.compile(r"(?:0[xX][0-9a-fA-F]+|0[bB][01]+|\d+)(?:[uU]?[lL]{0,2}|[lL]{1,2}[uU])")
_INTEGERS = frozenset(
    f"{sign}{size}" for sign in ("", "unsigned ") for size in ("char", "short", "int", "long", "long long")
) | {"signed char"}
#: Types that hold every index along x, and casts to which the index may pass through.
_WIDE_ENOUGH = frozenset({"int", "unsigned int", "long", "unsigned long", "long long", "unsigned long long"})
#: The operators, and what computes them and notices what does not fit.
_EXACT = {"+": "GRIDSTRIDE_SUM", "-": "GRIDSTRIDE_DIFFERENCE", "*": "GRIDSTRIDE_PRODUCT"}
_DEPTH = 24


class Lane(NamedTuple):
    """The index of the thread along x: in the grid, or in the block; `written` tells its C++ type."""

    is_global: bool
    written: str


class Leaf(NamedTuple):
    """Something that all threads of a row have in common."""

    text: str


class Operation(NamedTuple):
    """A sum, difference or product."""

    operator: str
    left: Linear
    right: Linear


class Conversion(NamedTuple):
    """A value in another integer type."""

    ctype: str
    operand: Linear


Linear = Lane | Leaf | Operation | Conversion


def depends_on_lane(expression: Linear) -> bool:
    """Return whether an expression differs between the threads of a row."""
    match expression:
        case Lane():
            return True
        case Leaf():
            return False
        case Operation(_, left, right):
            return depends_on_lane(left) or depends_on_lane(right)
        case Conversion(_, operand):
            return depends_on_lane(operand)


def is_plain_lane(expression: Linear) -> bool:
    """Return whether an expression is the index itself, which always fits."""
    while isinstance(expression, Conversion) and expression.ctype in _WIDE_ENOUGH:
        expression = expression.operand
    return isinstance(expression, Lane)


def wide(expression: Linear) -> str:
    """Return an expression in 64 bits."""
    match expression:
        case Lane(is_global):
            return "gridstride_global" if is_global else "(long)gridstride_x"
        case Leaf(text):
            return f"(long)({text})"
        case Operation(operator, left, right):
            return f"({wide(left)} {operator} {wide(right)})"
        case Conversion(_, operand):
            return wide(operand)


def exact(expression: Linear) -> str:
    """Return an expression in its own types that notices what does not fit."""
    match expression:
        case Lane(is_global, written):
            return f"static_cast<decltype({written})>({wide(Lane(is_global, written))})"
        case Leaf(text):
            return f"({text})"
        case Operation(operator, left, right):
            return f"{_EXACT[operator]}({exact(left)}, {exact(right)})"
        case Conversion(ctype, operand) if is_plain_lane(expression):
            return f"static_cast<{ctype}>({exact(operand)})"
        case Conversion(ctype, operand):
            return f"GRIDSTRIDE_CONVERTED({ctype}, {exact(operand)})"


class Definition(NamedTuple):
    """A local variable that keeps its first value: its integer type ("" for auto) and the value."""

    ctype: str
    value: Node


class LinearReader:
    """Read expressions of one kernel.

    Parameters
    ----------
    leaves : mapping of name to text
        Names of integers that are the same for all threads and never change.
    definitions : mapping of name to Definition
        Local variables that never change.
    """

    def __init__(self, leaves: Mapping[str, str], definitions: Mapping[str, Definition]) -> None:
        self._leaves = leaves
        self._definitions = definitions
        #: What other variables are, such as that of a loop around the kernel.
        self.variables: dict[str, Linear] = {}

    def read(self, node: Node | None, depth: int = 0) -> Linear | None:
        """Return a node as an expression, or None: it is not linear, or not understood."""
        if node is None or depth > _DEPTH:
            return None
        written = global_index(node)
        if written is not None:
            return Lane(True, written)
        match node.type:
            case "number_literal":
                text = text_of(node)
                return Leaf(text) if _INTEGER_LITERAL.fullmatch(text) else None
            case "identifier":
                return self._name(text_of(node), depth)
            case "parenthesized_expression":
                return self.read(_only_child(node), depth + 1)
            case "field_expression":
                return _member(node)
            case "binary_expression":
                return self._operation(node, depth)
            case "cast_expression" | "call_expression":
                cast = cast_of(node)
                operand = self.read(cast[1], depth + 1) if cast else None
                return Conversion(cast[0], operand) if cast and operand is not None else None
        return None

    def _name(self, name: str, depth: int) -> Linear | None:
        if name in self.variables:
            return self.variables[name]
        if name in self._leaves:
            return Leaf(self._leaves[name])
        definition = self._definitions.get(name)
        value = self.read(definition.value, depth + 1) if definition else None
        if definition is None or value is None:
            return None
        return Conversion(definition.ctype, value) if definition.ctype else value

    def _operation(self, node: Node, depth: int) -> Linear | None:
        operator = text_of(node.child_by_field_name("operator"))
        left = self.read(node.child_by_field_name("left"), depth + 1) if operator in _EXACT else None
        right = self.read(node.child_by_field_name("right"), depth + 1) if left is not None else None
        if left is None or right is None:
            return None
        if operator == "*" and depends_on_lane(left) and depends_on_lane(right):
            return None
        return Operation(operator, left, right)


def integer_type(written: str) -> str:
    """Return the canonical spelling of an integer type, "" for any other."""
    words = [word for word in written.split() if word not in ("const", "constexpr")]
    name = normalize_name(" ".join(words)) if words else ""
    return name if name in _INTEGERS else ""


def cast_of(node: Node) -> tuple[str, Node] | None:
    """Return the integer type and the operand of a cast, however it is written."""
    if node.type == "cast_expression":
        operand = node.child_by_field_name("value")
        ctype = integer_type(text_of(node.child_by_field_name("type")))
        return (ctype, operand) if ctype and operand is not None else None
    function, arguments = node.child_by_field_name("function"), node.child_by_field_name("arguments")
    if node.type != "call_expression" or function is None or arguments is None:
        return None
    written = text_of(function)
    if function.type == "template_function":
        if text_of(function.child_by_field_name("name")) not in ("static_cast", "gridstride_cast"):
            return None
        written = text_of(function.child_by_field_name("arguments")).strip("<> ")
    ctype = integer_type(written)
    return (ctype, arguments.named_children[0]) if ctype and arguments.named_child_count == 1 else None


def global_index(node: Node) -> str | None:
    """Return an expression with the type of ``blockIdx.x * blockDim.x + threadIdx.x`` as written, if it is that.

    The order may be any other, and parts may be cast to types in which every index fits.
    """
    if node.type != "binary_expression" or text_of(node.child_by_field_name("operator")) != "+":
        return None
    for first, second in (("left", "right"), ("right", "left")):
        product = _bare(node.child_by_field_name(first))
        thread = _bare(node.child_by_field_name(second))
        if thread is None or product is None or text_of(thread) != "threadIdx.x" or not _is_product(product):
            continue
        return _type_of(node)
    return None


def _is_product(node: Node) -> bool:
    if node.type != "binary_expression" or text_of(node.child_by_field_name("operator")) != "*":
        return False
    factors = {text_of(_bare(node.child_by_field_name(side))) for side in ("left", "right")}
    return factors == {"blockIdx.x", "blockDim.x"}


def _bare(node: Node | None) -> Node | None:
    """Return a node without parentheses and harmless casts around it."""
    while node is not None:
        if node.type == "parenthesized_expression":
            node = _only_child(node)
            continue
        cast = cast_of(node) if node.type in ("cast_expression", "call_expression") else None
        if cast is None or cast[0] not in _WIDE_ENOUGH:
            return node
        node = cast[1]
    return None


def _type_of(node: Node) -> str:
    """Return an expression of the same type as one that is made of indices: they become zeros."""
    return re.sub(r"\b(?:threadIdx|blockIdx|blockDim)\s*\.\s*x\b", "0u", text_of(node))


def _member(node: Node) -> Linear | None:
    text = member_text(node)
    if text is None:
        return None
    return Lane(False, "0u") if text == "threadIdx.x" else Leaf(INDEX_MEMBERS[text])


def member_text(node: Node) -> str | None:
    """Return ``threadIdx.x`` and the like without blanks; None for any other node."""
    if node.type != "field_expression":
        return None
    text = text_of(node).replace(" ", "")
    return text if text in INDEX_MEMBERS else None


def _only_child(node: Node) -> Node | None:
    children = [child for child in node.named_children if child.type != "comment"]
    return children[0] if len(children) == 1 else None


def _index_members() -> Iterator[tuple[str, str]]:
    for axis in "xyz":
        yield f"threadIdx.{axis}", f"gridstride_here.__thread_{axis}"
        yield f"blockIdx.{axis}", f"gridstride_here.__block_index.{axis}"
        yield f"blockDim.{axis}", f"gridstride_here.__block_shape.{axis}"
        yield f"gridDim.{axis}", f"gridstride_here.__grid_shape.{axis}"


#: The built-in indices, and what they are called in a flat form.
INDEX_MEMBERS = {**dict(_index_members()), "threadIdx.x": "static_cast<unsigned>(gridstride_x)"}
