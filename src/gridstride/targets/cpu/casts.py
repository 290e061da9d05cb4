"""The part of the source pass that makes casts from floating point to integers saturate, as on the GPU.

C++ leaves such a cast of a number out of range undefined; the device defines it. Every cast to an
integer type that stands in a function becomes a call that looks at the operand's type:

    (int)x    int(x)    static_cast<int>(x)
    gridstride_cast<int>(x)
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import TYPE_CHECKING

from gridstride._syntax import normalize_name
from gridstride._syntax.declarations import bodies_of
from gridstride._syntax.parser import captures, text_of
from gridstride.targets.cpu.edits import Edit

if TYPE_CHECKING:
    from tree_sitter import Node

_CAST = b"gridstride_cast"
_INTEGERS = frozenset(
    f"{sign}{size}" for sign in ("", "unsigned ") for size in ("char", "short", "int", "long", "long long")
) | {"signed char"}
_WORDS = rb"(?:signed|unsigned|char|short|int|long|u?int(?:8|16|32|64|ptr)_t|size_t|ptrdiff_t|uchar|ushort|uint|ulong)"
_CANDIDATE = re.compile(
    rb"\(\s*(?:std\s*::\s*)?" + _WORDS + rb"[\w\s]*\)|\bstatic_cast\b|\b" + _WORDS + rb"\s*\("
)


_CASTS = """
(cast_expression) @it
(call_expression function: (primitive_type)) @it
(call_expression function: (identifier) @name
  (#match? @name "^(short|long|unsigned|signed|uchar|ushort|uint|ulong)$")) @it
(call_expression function: (template_function name: (identifier) @name (#eq? @name "static_cast"))) @it
"""


def cast_edits(source: bytes, code: bytes, *, outside: Collection[Edit]) -> list[Edit]:
    """Return the edits for a text, except within what other edits replace.

    `code` is the same text, masked.
    """
    if not _CANDIDATE.search(code):
        return []
    edits = [
        edit
        for body in bodies_of(source)
        for node in captures(body, _CASTS)
        for edit in _edits_of(node, source)
    ]
    return [edit for edit in edits if not any(other.start <= edit.start < other.end for other in outside)]


def _edits_of(node: Node, source: bytes) -> list[Edit]:
    """Return the edits that turn one cast into a call."""
    if node.type == "cast_expression":
        written, value = node.child_by_field_name("type"), node.child_by_field_name("value")
        in_sizeof = node.parent is not None and node.parent.type == "sizeof_expression"
        if written is None or value is None or in_sizeof or not _is_integer(text_of(written)):
            return []
        removed = source[node.start_byte : value.start_byte]
        call = b"%s<%s>(" % (_CAST, source[written.start_byte : written.end_byte])
        lines = b"\n" * (removed.count(b"\n") - call.count(b"\n"))
        end = _operand_end(value)
        return [
            Edit(node.start_byte, value.start_byte, call + lines),
            Edit(end, end, b")"),
        ]
    function, arguments = node.child_by_field_name("function"), node.child_by_field_name("arguments")
    if function is None or arguments is None or arguments.named_child_count != 1 or _declares(node):
        return []
    if function.type != "template_function":
        kind = source[function.start_byte : function.end_byte]
        is_integer = _is_integer(kind.decode(errors="replace"))
        return [Edit(function.start_byte, function.end_byte, b"%s<%s>" % (_CAST, kind))] if is_integer else []
    name, types = function.child_by_field_name("name"), function.child_by_field_name("arguments")
    if name is None or types is None or not _is_integer(text_of(types).strip("<> ")):
        return []
    return [Edit(name.start_byte, name.end_byte, _CAST)]


def _declares(node: Node) -> bool:
    """Return whether what looks like ``int(x)`` declares, as ``int (&row)[4] = rows[0];`` does.

    The number that a cast gives is neither called nor indexed nor assigned to, and as a statement it is for nothing.
    """
    parent = node.parent
    while (
        parent is not None
        and parent.type == "comma_expression"
        and parent.child_by_field_name("left") == node
    ):
        node, parent = parent, parent.parent
    if parent is None or parent.type == "expression_statement":
        return True
    field = {
        "call_expression": "function",
        "subscript_expression": "argument",
        "assignment_expression": "left",
    }
    return parent.type in field and parent.child_by_field_name(field[parent.type]) == node


def _operand_end(value: Node) -> int:
    """Return where the operand of a cast ends.

    The parser takes ``x < y && z > (w)`` for a call of a template, so that ``(int)x < y && z > (w)`` would be a
    cast of all of it. What holds ``&&`` or ``||`` is taken for comparisons.
    """
    head: Node | None = value
    while head is not None and head.type in ("call_expression", "field_expression"):
        head = head.child_by_field_name("function" if head.type == "call_expression" else "field")
    if head is None or head.type not in ("template_function", "template_method"):
        return value.end_byte
    name, arguments = head.child_by_field_name("name"), head.child_by_field_name("arguments")
    compares = arguments is not None and any(
        child.type == "binary_expression" and text_of(child.child_by_field_name("operator")) in ("&&", "||")
        for child in arguments.named_children
    )
    return name.end_byte if compares and name is not None else value.end_byte


def _is_integer(written: str) -> bool:
    return normalize_name(written) in _INTEGERS
