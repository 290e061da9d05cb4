"""The text of a kernel, or of a part of it, for one thread whose indices are given."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from gridstride._syntax import lexical
from gridstride._syntax.parser import declared_name, text_of
from gridstride.targets.cpu.edits import Edit, Rewritten
from gridstride.targets.cpu.flat.admission import parameters_of
from gridstride.targets.cpu.flat.linear import (
    INDEX_MEMBERS,
    Linear,
    LinearReader,
    depends_on_lane,
    global_index,
    is_plain_lane,
    member_text,
    wide,
)

if TYPE_CHECKING:
    from tree_sitter import Node


class LaneText:
    """Write parts of a kernel for one thread.

    Parameters
    ----------
    source : bytes
        The text that the nodes are positions in.
    kernel : Node
    reader : LinearReader

    Attributes
    ----------
    indices : list of Linear
        The indices that were written in 64 bits, and may not fit their types.
    """

    def __init__(self, source: bytes, kernel: Node, reader: LinearReader) -> None:
        self._source = source
        self._reader = reader
        self._pointers = pointer_parameters(kernel)
        self.indices: list[Linear] = []

    def of(self, node: Node, edits: Sequence[Edit] = ()) -> str:
        """Return the text of a node with some edits, and what is left of it rewritten."""
        start = node.start_byte
        every = [
            item._replace(start=item.start - start, end=item.end - start)
            for item in (*edits, *self._edits(node, edits))
        ]
        text = Rewritten(self._source[start : node.end_byte], every).text
        return lexical.without_comments(text).decode()

    def _edits(self, node: Node, others: Sequence[Edit]) -> Iterator[Edit]:
        """Yield the changes to a node, none within another."""
        if any(item.start <= node.start_byte and node.end_byte <= item.end for item in others):
            return
        written = global_index(node)
        member = member_text(node)
        if written is not None:
            yield _edit(node, f"static_cast<decltype({written})>(gridstride_global)")
        elif member is not None:
            yield _edit(node, f"({INDEX_MEMBERS[member]})")
        elif node.type == "comment" or node.type == "preproc_call":
            yield _edit(node, "")
        else:
            index = self._wide_index(node)
            for child in node.named_children:
                if index is not None and child.type == "subscript_argument_list":
                    yield _edit(child, f"[{wide(index)}]")
                else:
                    yield from self._edits(child, others)

    def _wide_index(self, node: Node) -> Linear | None:
        """Return the index of an element of an array, if it is better found in 64 bits."""
        element = element_of(node, self._pointers, self._reader)
        if element is None or not depends_on_lane(element[1]):
            return None
        if not is_plain_lane(element[1]):
            self.indices.append(element[1])
        return element[1]


def element_of(node: Node, pointers: frozenset[str], reader: LinearReader) -> tuple[str, Linear] | None:
    """Return the pointer and the index of an element of an array; None for any other node."""
    indices = node.child_by_field_name("indices") if node.type == "subscript_expression" else None
    pointer = node.child_by_field_name("argument")
    if indices is None or indices.named_child_count != 1 or pointer is None:
        return None
    if pointer.type != "identifier" or text_of(pointer) not in pointers:
        return None
    index = reader.read(indices.named_children[0])
    return (text_of(pointer), index) if index is not None else None


def pointer_parameters(kernel: Node) -> frozenset[str]:
    """Return the names of parameters that are pointers."""
    declarators = (parameter.child_by_field_name("declarator") for parameter in parameters_of(kernel))
    return frozenset(
        text_of(declared_name(node))
        for node in declarators
        if node is not None and node.type in ("pointer_declarator", "array_declarator")
    )


def _edit(node: Node, text: str) -> Edit:
    return Edit(node.start_byte, node.end_byte, text.encode())
