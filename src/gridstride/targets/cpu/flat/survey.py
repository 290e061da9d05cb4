"""What a text declares, as far as the flat tier asks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from gridstride._syntax import lexical
from gridstride._syntax.declarations import bodies_of, functions_of
from gridstride._syntax.parser import declared_name, text_of
from gridstride.targets.cpu.flat.admission import Text

if TYPE_CHECKING:
    from tree_sitter import Node

_DEFINE = re.compile(rb"^[ \t]*#[ \t]*define[ \t]+(\w+)(\(?)((?:\\\r?\n|[^\n])*)", re.MULTILINE)
_CLASSES = frozenset({"struct_specifier", "class_specifier", "union_specifier"})
_TYPES = _CLASSES | {"enum_specifier", "namespace_definition", "alias_declaration"}
_TEMPLATE_PARAMETERS = frozenset(
    {"type_parameter_declaration", "parameter_declaration", "optional_type_parameter_declaration"}
    | {"optional_parameter_declaration", "variadic_type_parameter_declaration"}
)


class Content(NamedTuple):
    """What a text declares, and its kernels' definitions by qualified names."""

    text: Text
    kernels: dict[str, list[Node]]

    @property
    def ends(self) -> dict[str, int]:
        """Where the last definition of each kernel ends, a template's head included."""
        return {name: _end_of(nodes[-1]) for name, nodes in self.kernels.items()}


def survey(source: bytes, macros: Sequence[tuple[str, str]]) -> Content:
    """Read a text; `macros` are defined before it."""
    nodes = {(body.start_byte, body.end_byte): body.parent for body in bodies_of(source)}
    kernels: dict[str, list[Node]] = {}
    functions: dict[str, list[Node]] = {}
    for function in functions_of(source):
        node = nodes.get(function.body)
        if node is not None and function.is_kernel:
            kernels.setdefault(function.name, []).append(node)
        elif node is not None:
            functions.setdefault(function.name.rpartition("::")[2], []).append(node)
    names = _Names()
    for root in {_root_of(node) for nodes in (*kernels.values(), *functions.values()) for node in nodes}:
        names.collect(root)
    masked = lexical.mask(source)
    known: dict[str, list[str]] = {}
    for name, body in (*macros, *_macros(source, masked)):
        known.setdefault(name, []).append(body)
    text = Text(
        functions, frozenset(names.types), frozenset(names.classes), frozenset(names.variables), known, masked
    )
    return Content(text, kernels)


class _Names:
    """The names that a text declares outside of functions."""

    def __init__(self) -> None:
        self.types: set[str] = set()
        self.classes: set[str] = set()
        self.variables: set[str] = set()

    def collect(self, node: Node) -> None:
        """Add what is declared in a node."""
        for child in node.named_children:
            if child.type in _TYPES:
                name = text_of(child.child_by_field_name("name"))
                self.types.add(name)
                if child.type in _CLASSES:
                    self.classes.add(name)
            elif child.type in _TEMPLATE_PARAMETERS:
                self.types.add(_template_parameter(child))
            elif child.type in ("declaration", "field_declaration"):
                self.variables.update(_declared(child))
            elif child.type == "enumerator":
                self.variables.add(text_of(child.child_by_field_name("name")))
            elif child.type == "type_definition":
                self.types.update(_declared(child))
            if child.type not in ("compound_statement", "parameter_list"):
                self.collect(child)


def _declared(declaration: Node) -> Iterator[str]:
    for declarator in declaration.children_by_field_name("declarator"):
        yield text_of(declared_name(declarator)) or text_of(declarator)


def _template_parameter(parameter: Node) -> str:
    declarator = parameter.child_by_field_name("declarator")
    if declarator is not None:
        return text_of(declared_name(declarator))
    named = parameter.child_by_field_name("name")
    return text_of(named or (parameter.named_children[0] if parameter.named_children else None))


def _end_of(definition: Node) -> int:
    parent = definition.parent
    is_template = parent is not None and parent.type == "template_declaration"
    return parent.end_byte if is_template and parent is not None else definition.end_byte


def _root_of(node: Node) -> Node:
    while node.parent is not None:
        node = node.parent
    return node


def _macros(source: bytes, masked: bytes) -> Iterator[tuple[str, str]]:
    """Yield the macros that a text defines; a parenthesis begins the bodies of those with parameters."""
    for match in _DEFINE.finditer(masked):
        body = lexical.without_comments(source[match.start(2) : match.end(3)]).decode(errors="replace")
        yield match[1].decode(), body if match[2] else body.strip()
