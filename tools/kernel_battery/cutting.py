"""From a file of a public project to what a run-time compiler takes: device code without the program around it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from gridstride._syntax.parser import parse

if TYPE_CHECKING:
    from tree_sitter import Node

#: Headers that a kernel may ask for; all others belong to the program around it.
_DEVICE_HEADERS = re.compile(
    r'[<"](cooperative_groups(/\w+)?\.h|cuda_(fp16|bf16|fp8)\.h|cuComplex\.h|curand_kernel\.h|cuda/\w+|cub/[\w/.]+'
    r'|thrust/complex\.h|math_constants\.h|(c?std(int|def|io)|c?math|c?float|c?assert)(\.h)?)[>"]'
)
_CONTAINERS = {
    "translation_unit", "namespace_definition", "declaration_list", "linkage_specification",
    "preproc_if", "preproc_ifdef", "preproc_else", "preproc_elif",
}  # fmt: skip
_DEVICE = re.compile(rb"__(global|device)__|\bconstexpr\b")
_COMMENT = re.compile(r'("(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)+\')|//[^\n]*|/\*.*?\*/', re.DOTALL)
_TOKEN = re.compile(r'"(?:[^"\\\n]|\\.)*"|\w+|[^\w\s]')


def device_part(text: str, without: Sequence[str] = ()) -> str:
    """Return a text without host functions, their instances and their headers.

    Parameters
    ----------
    text : str
        A file of CUDA C++.
    without : sequence of str
        Items at namespace level that contain one of these are left out too.
    """
    source = text.encode()
    kept = bytearray(source)
    for item in _items(parse(source)):
        content = source[item.start_byte : item.end_byte]
        if _is_of_the_host(item, content) or any(word.encode() in content for word in without):
            # Lines keep their numbers, which messages show.
            kept[item.start_byte : item.end_byte] = re.sub(rb"[^\n]", b" ", content)
    return kept.decode()


def digest(text: str) -> str:
    """Return the first half of a SHA-256 of a text's tokens: comments, blanks and line ends do not count."""
    plain = _COMMENT.sub(lambda match: match[1] or " ", text.replace("\\\n", " "))
    return hashlib.sha256(" ".join(_TOKEN.findall(plain)).encode()).hexdigest()[:32]


def _items(node: Node) -> Iterator[Node]:
    for child in node.named_children:
        if child.type in _CONTAINERS:
            yield from _items(child)
        else:
            yield child


def _is_of_the_host(item: Node, content: bytes) -> bool:
    if item.type == "preproc_include":
        path = item.child_by_field_name("path")
        return path is None or path.text is None or not _DEVICE_HEADERS.fullmatch(path.text.decode())
    if item.type == "template_instantiation":
        return True
    if content.startswith(
        (b"struct", b"class", b"union", b"enum")
    ):  # with attributes they look like functions
        return False
    body = next(
        (part for part in _parts(item) if part.type in {"compound_statement", "field_initializer_list"}), None
    )
    if body is None or not any(part.type == "function_definition" for part in _parts(item, with_self=True)):
        return False
    return _DEVICE.search(content[: body.start_byte - item.start_byte]) is None


def _parts(item: Node, with_self: bool = False) -> Iterator[Node]:
    """Yield an item's children, those of its function and of its template."""
    if with_self:
        yield item
    for child in item.named_children:
        yield child
        if child.type in {"function_definition", "template_declaration"}:
            yield from _parts(child)
