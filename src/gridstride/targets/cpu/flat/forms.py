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
from gridstride.targets.cpu.edits import Edit, Rewritten
from gridstride.targets.cpu.flat import vocabulary
from gridstride.targets.cpu.flat.admission import Text, parameters_of, walk
from gridstride.targets.cpu.flat.constancy import changed_names, stored_through
from gridstride.targets.cpu.flat.linear import (
    INDEX_MEMBERS,
    Conversion,
    Linear,
    LinearReader,
    depends_on_lane,
    exact,
    global_index,
    is_plain_lane,
    member_text,
    wide,
)
from gridstride.targets.cpu.flat.locals import definitions_of, leaves_of
from gridstride.targets.cpu.flat.obstacles import Obstacle
from gridstride.targets.cpu.flat.strides import StrideLoop, stride_loop
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
        self._indices: list[Linear] = []
        self._removed: list[tuple[int, int]] = []

    def text(self, name: str) -> str:
        """Return the functions of the form, on one line, so that the lines behind keep their numbers."""
        self._find_guards()
        names = {
            "name": name,
            "template_arguments": self._template_arguments(),
            "arguments": "".join(f", {item}" for item in self._parameter_names()),
        }
        filled = Template(_template("kernel")).substitute(
            names,
            head=self._template_head(),
            parameters="".join(f", {self._plain(node)}" for node in parameters_of(self._kernel)),
            row="gridstride_merged_row" if self._is_merged() else "gridstride_block_row",
            body=self._lane_body(),
            narrowed=self._narrowed(),
            rounds=self._rounds(names),
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

    def _rounds(self, names: Mapping[str, str]) -> str:
        """Return what checks the indices of the active threads, or runs them."""
        indices = " ".join(
            f"{item};" for item in dict.fromkeys(exact(Conversion("long", index)) for index in self._indices)
        )
        if self._stride is None:
            return Template(_template("once")).substitute(names, indices=indices)
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
        edits = [
            Edit(start - self._body.start_byte, end - self._body.start_byte, b";")
            for start, end in self._removed
        ]
        if self._stride is not None:
            stride = self._stride
            value = (
                f"; {stride.ctype} {stride.name} = static_cast<{stride.ctype}>({wide(stride.variable())}); "
            )
            edits[-1] = edits[-1]._replace(replacement=value.encode())
            edits += [self._edit(node, "return;") for node in stride.continues]
        edits += list(self._edits(self._body))
        return lexical.without_comments(
            Rewritten(self._source[self._body.start_byte : self._body.end_byte], edits).text
        ).decode()

    def _edits(self, node: Node) -> Iterator[Edit]:
        """Yield the changes to the body, none within another."""
        if any(start <= node.start_byte and node.end_byte <= end for start, end in self._removed):
            return
        if self._stride is not None and node in self._stride.continues:
            return
        written = global_index(node)
        member = member_text(node)
        if written is not None:
            yield self._edit(node, f"static_cast<decltype({written})>(gridstride_global)")
        elif member is not None:
            yield self._edit(node, f"({INDEX_MEMBERS[member]})")
        elif node.type == "comment" or node.type == "preproc_call":
            yield self._edit(node, "")
        else:
            index = self._element(node)
            for child in node.named_children:
                if index is not None and child.type == "subscript_argument_list":
                    yield self._edit(child, f"[{wide(index)}]")
                else:
                    yield from self._edits(child)

    def _element(self, node: Node) -> Linear | None:
        """Return the index of an element of an array, if it is better found in 64 bits."""
        indices = node.child_by_field_name("indices") if node.type == "subscript_expression" else None
        if (
            indices is None
            or indices.named_child_count != 1
            or not self._is_pointer(node.child_by_field_name("argument"))
        ):
            return None
        index = self._reader.read(indices.named_children[0])
        if index is None or not depends_on_lane(index):
            return None
        if not is_plain_lane(index):
            self._indices.append(index)
        return index

    def _is_pointer(self, node: Node | None) -> bool:
        name = text_of(node)
        return (
            any(
                text_of(declared_name(declarator)) == name
                and declarator.type in ("pointer_declarator", "array_declarator")
                for parameter in parameters_of(self._kernel)
                if (declarator := parameter.child_by_field_name("declarator")) is not None
            )
            and node is not None
            and node.type == "identifier"
        )

    def _edit(self, node: Node, text: str) -> Edit:
        start = self._body.start_byte
        return Edit(node.start_byte - start, node.end_byte - start, text.encode())

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


@cache
def _template(part: str) -> str:
    with open(f"{FOLDER}/templates/flat_{part}.cpp") as file:
        return file.read()
