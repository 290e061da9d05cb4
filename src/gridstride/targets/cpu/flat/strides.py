"""Loops around a whole kernel in which every thread begins at its index and goes on in equal steps.

    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) ...

Thread by thread such a loop leaps through memory. Where nothing is carried from one step to the next but
what lies in memory, all threads can make their first step, then all their second one; the steps of one
thread stay in order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gridstride._syntax.parser import text_of
from gridstride.targets.cpu.flat.admission import declared_names, walk
from gridstride.targets.cpu.flat.linear import (
    Conversion,
    Lane,
    Leaf,
    Linear,
    LinearReader,
    Operation,
    depends_on_lane,
    exact,
    integer_type,
    is_plain_lane,
)

if TYPE_CHECKING:
    from collections.abc import Set

    from tree_sitter import Node

_LOOPS = frozenset({"for_statement", "while_statement", "do_statement"})
_BREAKABLE = _LOOPS | {"switch_statement"}


class StrideLoop(NamedTuple):
    """A loop whose steps can be made by all threads together.

    Attributes
    ----------
    name, ctype : str
        The loop's variable and its type.
    start, bound, step : Linear
        It runs from the thread's index to below the bound.
    body : Node
    continues : list of Node
        The statements that go on with the next step.
    """

    name: str
    ctype: str
    start: Linear
    bound: Linear
    step: Linear
    body: Node
    continues: list[Node]

    def variable(self) -> Linear:
        """Return the loop's variable in one step."""
        return Conversion(self.ctype, Operation("+", self.start, Leaf("gridstride_offset")))

    def first(self) -> str:
        """Return the variable of the first active thread in its first step."""
        start = self.start
        while isinstance(start, Conversion):
            start = start.operand
        is_global = isinstance(start, Lane) and start.is_global
        return "gridstride_here.__global(gridstride_begin)" if is_global else "gridstride_begin"

    def last(self) -> str:
        """Return an expression that notices whether the variable can run over."""
        return exact(Conversion(self.ctype, Operation("+", self.bound, self.step)))


def stride_loop(kernel: Node, statement: Node, reader: LinearReader, changed: Set[str]) -> StrideLoop | None:
    """Return a kernel's last statement as such a loop, or None where it is none."""
    header = _header(statement, reader)
    body = statement.child_by_field_name("body")
    if header is None or body is None:
        return None
    name, ctype, start, bound, step = header
    inside = {*declared_names(body), name}
    carried = [other for other in declared_names(kernel) if other in changed and other not in inside]
    jumps = [node for node in walk(body) if node.type in ("return_statement", "lambda_expression")]
    breaks = [
        node
        for node in walk(body)
        if node.type == "break_statement" and not _is_inside(node, body, _BREAKABLE)
    ]
    if carried or jumps or breaks or changes(body, name) or declared_names(kernel).count(name) != 1:
        return None
    continues = [
        node
        for node in walk(body)
        if node.type == "continue_statement" and not _is_inside(node, body, _LOOPS)
    ]
    return StrideLoop(name, ctype, start, bound, step, body, continues)


def _header(statement: Node, reader: LinearReader) -> tuple[str, str, Linear, Linear, Linear] | None:
    declaration = statement.child_by_field_name("initializer")
    if statement.type != "for_statement" or declaration is None or declaration.type != "declaration":
        return None
    declarators = declaration.children_by_field_name("declarator")
    ctype = integer_type(text_of(declaration.child_by_field_name("type")))
    if len(declarators) != 1 or declarators[0].type != "init_declarator" or not ctype:
        return None
    variable = declarators[0].child_by_field_name("declarator")
    start = reader.read(declarators[0].child_by_field_name("value"))
    if variable is None or variable.type != "identifier" or start is None or not is_plain_lane(start):
        return None
    name = text_of(variable)
    bound, step = bound_of(statement, name, reader), step_of(statement, name, reader)
    if bound is None or step is None or depends_on_lane(bound) or depends_on_lane(step):
        return None
    return name, ctype, start, bound, step


def bound_of(statement: Node, name: str, reader: LinearReader) -> Linear | None:
    """Return what a loop's variable stays below."""
    condition = statement.child_by_field_name("condition")
    if condition is None or condition.type != "binary_expression":
        return None
    operator = text_of(condition.child_by_field_name("operator"))
    left, right = condition.child_by_field_name("left"), condition.child_by_field_name("right")
    if operator == ">":
        operator, left, right = "<", right, left
    return reader.read(right) if operator == "<" and text_of(left) == name else None


def step_of(statement: Node, name: str, reader: LinearReader) -> Linear | None:
    """Return what a loop adds to its variable by ``+=``."""
    update = statement.child_by_field_name("update")
    if (
        update is None
        or update.type != "assignment_expression"
        or text_of(update.child_by_field_name("left")) != name
    ):
        return None
    operator = next((text_of(child) for child in update.children if not child.is_named), "")
    return reader.read(update.child_by_field_name("right")) if operator == "+=" else None


def changes(body: Node, name: str) -> bool:
    """Return whether a loop's body may change its variable: anything but reading it as a value."""
    return any(
        node.type == "identifier" and text_of(node) == name and not _is_read(node) for node in walk(body)
    )


def _is_read(node: Node) -> bool:
    inner, parent = node, node.parent
    while parent is not None and parent.type == "parenthesized_expression":
        inner, parent = parent, parent.parent
    if parent is None:
        return False
    match parent.type:
        case "binary_expression" | "subscript_argument_list" | "cast_expression" | "conditional_expression":
            return True
        case "assignment_expression":
            return parent.child_by_field_name("right") == inner
        case "init_declarator":
            declaration = parent.parent
            written = declaration.child_by_field_name("type") if declaration is not None else None
            plain = written is not None and written.type in ("primitive_type", "sized_type_specifier")
            declarator = parent.child_by_field_name("declarator")
            return plain and declarator is not None and declarator.type == "identifier"
        case "condition_clause" | "unary_expression" | "if_statement":
            return True
    return False


def _is_inside(node: Node, outermost: Node, kinds: Set[str]) -> bool:
    parent = node.parent
    while parent is not None and parent.id != outermost.id:
        if parent.type in kinds:
            return True
        parent = parent.parent
    return False
