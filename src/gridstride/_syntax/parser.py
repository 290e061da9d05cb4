"""The parser, loaded at first use."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Language, Node, Parser, Query

_thread = threading.local()


def parse(source: bytes) -> Node:
    """Return the root of the syntax tree; what cannot be understood becomes ERROR nodes."""
    parser: Parser | None = getattr(_thread, "parser", None)  # a parser may not be shared by threads
    if parser is None:
        from tree_sitter import Parser

        parser = _thread.parser = Parser(_language())
    return parser.parse(source).root_node


def text_of(node: Node | None) -> str:
    """Return a node's text with runs of blanks made one; "" for no node."""
    if node is None or node.text is None:
        return ""
    return " ".join(node.text.decode(errors="replace").split())


def descendants(node: Node, kinds: frozenset[str], within: frozenset[str]) -> Iterator[Node]:
    """Yield nodes of some kinds in source order, looking only inside nodes of the kinds `within`."""
    for child in node.named_children:
        if child.type in kinds:
            yield child
        if child.type in within:
            yield from descendants(child, kinds, within)


def captures(node: Node, pattern: str) -> list[Node]:
    """Return what a tree-sitter query captures as ``@it`` below a node."""
    from tree_sitter import QueryCursor

    return QueryCursor(_query(pattern)).captures(node).get("it", [])


def declared_name(declarator: Node | None) -> Node | None:
    """Return the node of the name inside a declarator, however it is wrapped."""
    while declarator is not None and declarator.type not in {
        "identifier",
        "field_identifier",
        "qualified_identifier",
    }:
        if declarator.type.startswith("abstract_"):
            return None
        declarator = declarator.child_by_field_name("declarator") or last_named(declarator)
    return declarator


def last_named(node: Node) -> Node | None:
    """Return the last named child."""
    return node.named_children[-1] if node.named_children else None


@cache
def _query(pattern: str) -> Query:
    from tree_sitter import Query

    return Query(_language(), pattern)


@cache
def _language() -> Language:
    import tree_sitter_cuda
    from tree_sitter import Language

    return Language(tree_sitter_cuda.language())
