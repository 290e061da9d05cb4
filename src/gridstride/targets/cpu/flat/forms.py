"""The flat form of a kernel: its body for one thread, and the loops over the threads of a portion.

    __global__ void f(float* x, int w, int h) {
        int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
        if (i >= w || j >= h) return;
        x[j * w + i] = 0;
    }

The guard becomes a question that is asked at the ends of a row, until it answers yes there: threads in
between are then active as well, since each comparison is linear. The body runs without it. Behind the
guard `i` and `j` are what they are above, but the element is found in 64 bits (see `linear`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from string import Template
from typing import TYPE_CHECKING, NamedTuple

from gridstride._syntax import lexical
from gridstride._syntax.parser import declared_name, text_of
from gridstride.targets.cpu.edits import Edit
from gridstride.targets.cpu.flat import vocabulary
from gridstride.targets.cpu.flat.admission import Text, parameters_of, walk
from gridstride.targets.cpu.flat.constancy import changed_names, stored_through
from gridstride.targets.cpu.flat.lanes import LaneText
from gridstride.targets.cpu.flat.linear import (
    Conversion,
    Linear,
    LinearReader,
    exact,
    global_index,
    member_text,
    wide,
)
from gridstride.targets.cpu.flat.locals import definitions_of, leaves_of
from gridstride.targets.cpu.flat.obstacles import Obstacle
from gridstride.targets.cpu.flat.strides import StrideLoop, stride_loop
from gridstride.targets.cpu.flat.strips import Strip, StripFinder
from gridstride.targets.cpu.prebuilt import FOLDER

if TYPE_CHECKING:
    from tree_sitter import Node

_NEGATED = {"<": ">=", ">=": "<", ">": "<=", "<=": ">", "!=": "=="}
_CONVEX = frozenset({"<", "<=", ">", ">=", "=="})


class Comparison(NamedTuple):
    """What holds in the active threads."""

    operator: str
    left: Linear
    right: Linear


class FlatForm:
    """The flat form of one kernel.

    Parameters
    ----------
    source : bytes
        The text that the nodes are positions in.
    kernel : Node
        Its definition, which `Admission` took.
    text : Text
        What the text declares.
    constants : set of str
        Macros that stand for integers.
    """

    def __init__(self, source: bytes, kernel: Node, text: Text, constants: frozenset[str]) -> None:
        self._source = source
        self._kernel = kernel
        body = kernel.child_by_field_name("body")
        assert body is not None
        self._body = body
        changed = changed_names(kernel, text)
        self._changed = changed - stored_through(kernel)
        self._stride: StrideLoop | None = None
        self._reader = LinearReader(leaves_of(kernel, changed, constants), definitions_of(kernel, changed))
        self._comparisons: list[Comparison] = []
        self._lane_text = LaneText(source, kernel, self._reader)
        self._removed: list[tuple[int, int]] = []
        self._text = text

    def text(self, name: str) -> str:
        """Return the functions of the form, on one line, so that the lines behind keep their numbers."""
        self._find_guards()
        names = {
            "name": name,
            "template_arguments": self._template_arguments(),
            "arguments": "".join(f", {item}" for item in self._parameter_names()),
        }
        strip = self._strip()
        heads = {
            "head": self._template_head(),
            "parameters": "".join(f", {self._plain(node)}" for node in parameters_of(self._kernel)),
            "row": "gridstride_merged_row" if self._is_merged() else "gridstride_block_row",
        }
        filled = Template(_template("kernel")).substitute(
            names,
            **heads,
            body=self._lane_body(),
            strip=Template(_template("strip")).substitute(names, **heads, **strip.holes()) if strip else "",
            narrowed=self._narrowed(),
            rounds=self._rounds(names, strip),
        )
        return " ".join(filled.split("\n"))

    def _narrowed(self) -> str:
        """Return what finds the active threads of a row."""
        if not self._comparisons:
            return ""
        guards = (
            f"GRIDSTRIDE_COMPARED({exact(item.left)}, {exact(item.right)});" for item in self._comparisons
        )
        active = (f"{wide(item.left)} {item.operator} {wide(item.right)}" for item in self._comparisons)
        return Template(_template("guards")).substitute(guards=" ".join(guards), active=" && ".join(active))

    def _strip(self) -> Strip | None:
        """Return the loop inside the kernel that strips can make."""
        if self._stride is not None:
            return None
        finder = StripFinder(self._source, self._kernel, self._text, self._reader, self._changed)
        return finder.find(list(self._statements(self._body)))

    def _statements(self, block: Node) -> Iterator[Node]:
        """Yield the statements of the body without the guards."""
        for node in block.named_children:
            if any(start == node.start_byte for start, _ in self._removed):
                consequence = node.child_by_field_name("consequence")
                if (
                    consequence is not None
                    and consequence.type == "compound_statement"
                    and not _returns(consequence)
                ):
                    yield from self._statements(consequence)
            elif node.type not in ("comment", "preproc_call"):
                yield node

    def _rounds(self, names: Mapping[str, str], strip: Strip | None) -> str:
        """Return what checks the indices of the active threads, or runs them."""
        indices = " ".join(
            f"{item};"
            for item in dict.fromkeys(exact(Conversion("long", index)) for index in self._lane_text.indices)
        )
        if self._stride is None:
            return Template(_template("once")).substitute(
                names, indices=indices, strips=Template(_STRIPS if strip else "").substitute(names)
            )
        return Template(_template("strides")).substitute(
            names,
            indices=indices,
            first=self._stride.first(),
            bound=wide(self._stride.bound),
            step=wide(self._stride.step),
            last=self._stride.last(),
        )

    # ---- the head ----

    def _template_head(self) -> str:
        node = self._kernel.parent
        if node is None or node.type != "template_declaration":
            return ""
        return f"template {self._plain(node.child_by_field_name('parameters'))} "

    def _template_arguments(self) -> str:
        node = self._kernel.parent
        if node is None or node.type != "template_declaration":
            return ""
        parameters = node.child_by_field_name("parameters")
        names = []
        for parameter in parameters.named_children if parameters is not None else ():
            name = _template_parameter_name(parameter)
            if not name:
                raise Obstacle(parameter, f"has the template parameter `{text_of(parameter)}`")
            names.append(name)
        return f"<{', '.join(names)}>"

    def _parameter_names(self) -> list[str]:
        names = []
        for parameter in parameters_of(self._kernel):
            name = text_of(declared_name(parameter.child_by_field_name("declarator")))
            if parameter.type != "parameter_declaration" or not name:
                raise Obstacle(parameter, f"has the parameter `{text_of(parameter)}`")
            names.append(name)
        return names

    # ---- the guard ----

    def _find_guards(self) -> None:
        """Take the comparisons of the leading guards; what is behind them needs no guard any more."""
        statements = [node for node in self._body.named_children if node.type != "comment"]
        for position, statement in enumerate(statements):
            if statement.type == "if_statement" and self._take_guard(
                statement, position == len(statements) - 1
            ):
                continue
            if position == len(statements) - 1:
                self._take_loop(statement)
            if statement.type != "declaration" or _has_effects(statement):
                return

    def _take_loop(self, statement: Node) -> None:
        """Let the threads make the steps of a loop around the rest of the kernel together."""
        self._stride = stride_loop(self._kernel, statement, self._reader, self._changed)
        if self._stride is not None:
            self._reader.variables[self._stride.name] = self._stride.variable()
            self._removed.append((statement.start_byte, self._stride.body.start_byte))

    def _take_guard(self, statement: Node, is_last: bool) -> bool:
        condition, consequence = _condition_of(statement), statement.child_by_field_name("consequence")
        if (
            condition is None
            or consequence is None
            or statement.child_by_field_name("alternative") is not None
        ):
            return False
        leaves = _returns(consequence)
        if not leaves and not is_last:
            return False
        parts = list(_parts(condition, "||" if leaves else "&&"))
        found = [comparison for part in parts if (comparison := self._comparison(part, negated=leaves))]
        self._comparisons += found
        if len(found) == len(parts):
            end = statement.end_byte if leaves else consequence.start_byte
            self._removed.append((statement.start_byte, end))
        return leaves and len(found) == len(parts)

    def _comparison(self, node: Node, *, negated: bool) -> Comparison | None:
        while node.type == "parenthesized_expression" and node.named_child_count == 1:
            node = node.named_children[0]
        if node.type != "binary_expression":
            return None
        operator = text_of(node.child_by_field_name("operator"))
        operator = _NEGATED.get(operator, "") if negated else operator
        left = self._reader.read(node.child_by_field_name("left"))
        right = self._reader.read(node.child_by_field_name("right"))
        if operator not in _CONVEX or left is None or right is None:
            return None
        return Comparison(operator, left, right)

    # ---- the body ----

    def _is_merged(self) -> bool:
        """Return whether threads and blocks along x only occur as one index of the whole grid."""
        return not any(self._separate_indices(self._body))

    def _separate_indices(self, node: Node) -> Iterator[Node]:
        if global_index(node) is not None:
            return
        if member_text(node) in ("threadIdx.x", "blockIdx.x"):
            yield node
        for child in node.named_children:
            yield from self._separate_indices(child)

    def _lane_body(self) -> str:
        edits = [Edit(start, end, b";") for start, end in self._removed]
        if self._stride is not None:
            stride = self._stride
            value = (
                f"; {stride.ctype} {stride.name} = static_cast<{stride.ctype}>({wide(stride.variable())}); "
            )
            edits[-1] = edits[-1]._replace(replacement=value.encode())
            edits += [Edit(node.start_byte, node.end_byte, b"return;") for node in stride.continues]
        return self._lane_text.of(self._body, edits)

    def _plain(self, node: Node | None) -> str:
        """Return the text of a node as it stands in the source, without comments."""
        if node is None:
            return ""
        return lexical.without_comments(self._source[node.start_byte : node.end_byte]).decode()


def _template_parameter_name(parameter: Node) -> str:
    if parameter.type == "type_parameter_declaration":
        return text_of(parameter.named_children[0]) if parameter.named_child_count == 1 else ""
    if parameter.type == "parameter_declaration":
        return text_of(declared_name(parameter.child_by_field_name("declarator")))
    return ""


def _condition_of(statement: Node) -> Node | None:
    clause = statement.child_by_field_name("condition")
    return (
        clause.child_by_field_name("value") if clause is not None and clause.named_child_count == 1 else None
    )


def _parts(node: Node, operator: str) -> Iterator[Node]:
    while node.type == "parenthesized_expression" and node.named_child_count == 1:
        node = node.named_children[0]
    if node.type == "binary_expression" and text_of(node.child_by_field_name("operator")) == operator:
        for side in ("left", "right"):
            child = node.child_by_field_name(side)
            if child is not None:
                yield from _parts(child, operator)
    else:
        yield node


def _returns(statement: Node) -> bool:
    statements = [node for node in statement.named_children if node.type != "comment"]
    if statement.type == "compound_statement" and len(statements) == 1:
        statement = statements[0]
    return statement.type == "return_statement" and statement.named_child_count == 0


def _has_effects(statement: Node) -> bool:
    """Return whether a declaration does more than compute: the inactive threads do without it."""
    for node in walk(statement):
        if node.type in ("assignment_expression", "update_expression", "lambda_expression"):
            return True
        if node.type == "call_expression":
            name = text_of(node.child_by_field_name("function")).partition("<")[0]
            if not vocabulary.is_computation(name):
                return True
    return False


_STRIPS = (
    "if (gridstride_strips_$name$template_arguments(gridstride_here, gridstride_begin, gridstride_end$arguments)) "
    "gridstride_run_strips_$name$template_arguments(gridstride_here, gridstride_begin, gridstride_end$arguments); else "
)


@cache
def _template(part: str) -> str:
    with open(f"{FOLDER}/templates/flat_{part}.cpp") as file:
        return file.read()
