"""What a CUDA C++ text declares: its functions and its variables in device memory."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from gridstride._syntax import lexical
from gridstride._syntax.parser import declared_name, descendants, last_named, parse, text_of

if TYPE_CHECKING:
    from tree_sitter import Node

_SCOPES = frozenset(
    {
        "translation_unit",
        "namespace_definition",
        "linkage_specification",
        "declaration_list",
        "template_declaration",
        "preproc_if",
        "preproc_ifdef",
        "preproc_elif",
        "preproc_else",
        "ERROR",
    }
)
_CLASS_SCOPES = frozenset(
    {"class_specifier", "struct_specifier", "union_specifier", "field_declaration_list"}
)
_PARAMETERS = frozenset(
    {"parameter_declaration", "optional_parameter_declaration", "variadic_parameter_declaration"}
)
_VARIABLE_KINDS = {b"__constant__": "constant", b"__managed__": "managed", b"__device__": "device"}
_WORD = re.compile(rb"\w+")
#: What may stand before the name of a function that is no kernel; another word may be a macro of a header's.
_ORDINARY_WORDS = frozenset(
    {b"C", b"__forceinline__", b"__host__", b"__noinline__", b"extern", b"inline", b"static", b"void"}
)
_LAUNCH_BOUNDS = re.compile(rb"\b__launch_bounds__\s*(?=\()")


class ParameterDeclaration(NamedTuple):
    """Name one parameter as written: its name ("" if none) and the text of its type."""

    name: str
    type: str


class FunctionDeclaration(NamedTuple):
    """Describe one function as written.

    Attributes
    ----------
    name : str
        With the namespaces and classes around it, for example ``a::f``.
    is_kernel, is_ordinary, is_template, is_definition : bool
        Whether it is declared ``__global__``, in words that no kernel is declared in, a template, with a body.
    parameters : tuple of ParameterDeclaration
    line : int
        Counted from 1.
    launch_bounds : str
        First argument of ``__launch_bounds__``; "" if there is none.
    body : (int, int)
        Byte positions of the braces; (0, 0) without a definition.
    template_parameters : str
        With their angle brackets; "" for what is no template.
    """

    name: str
    is_kernel: bool
    is_ordinary: bool
    is_template: bool
    is_definition: bool
    parameters: tuple[ParameterDeclaration, ...]
    line: int
    launch_bounds: str
    body: tuple[int, int]
    template_parameters: str = ""


KernelDeclaration = FunctionDeclaration


class VariableDeclaration(NamedTuple):
    """Describe a variable in device memory: qualified name, "device", "constant" or "managed", line."""

    name: str
    kind: str
    line: int


def kernels(text: str) -> tuple[KernelDeclaration, ...]:
    """Return the ``__global__`` functions of a text, each once, in source order."""
    chosen: dict[tuple[str, tuple[str, ...]], FunctionDeclaration] = {}
    for function in functions(text):
        if function.is_kernel:
            key = function.name, tuple(parameter.type for parameter in function.parameters)
            if key not in chosen or (function.is_definition and not chosen[key].is_definition):
                chosen[key] = function
    return tuple(sorted(chosen.values(), key=lambda function: function.line))


def functions(text: str) -> tuple[FunctionDeclaration, ...]:
    """Return all functions of a text in source order, members of classes included."""
    return functions_of(text.encode())


def globals_(text: str) -> tuple[VariableDeclaration, ...]:
    """Return the ``__device__``, ``__constant__`` and ``__managed__`` variables at namespace scope."""
    return tuple(_read(text.encode()).variables())


def functions_of(source: bytes) -> tuple[FunctionDeclaration, ...]:
    """Return all functions of a text given as bytes."""
    return _read(source).functions


def bodies_of(source: bytes) -> tuple[Node, ...]:
    """Return the outermost bodies: of functions, conversions and lambdas."""
    return tuple(_outermost_bodies(_read(source).root))


def namespaces_at(source: bytes, position: int) -> list[str]:
    """Return the named namespaces and classes around a position, outermost first."""
    node = _read(source).root.named_descendant_for_byte_range(position, position + 1)
    return [] if node is None else _scope_names(node)


def _outermost_bodies(node: Node) -> Iterator[Node]:
    waiting = [node]  # no recursion: expressions may be nested more deeply than Python's calls
    while waiting:
        found = waiting.pop()
        if found.type == "compound_statement":
            yield found
        else:
            waiting += reversed(found.named_children)


@lru_cache(maxsize=16)
def _read(source: bytes) -> _Reader:
    return _Reader(source)


class _Reader:
    def __init__(self, source: bytes) -> None:
        self.source = source
        self.masked = lexical.mask(source)
        self.code = lexical.without_directives(self.masked)
        self.root = parse(lexical.parseable(source, self.masked))
        self.macros = lexical.qualifier_macros(source, self.masked)
        self.functions = tuple(self._find_functions())

    def _find_functions(self) -> Iterator[FunctionDeclaration]:
        wanted = frozenset({"function_definition", "declaration", "field_declaration"})
        for node in descendants(self.root, wanted, _SCOPES | _CLASS_SCOPES | {"declaration"}):
            declarator = _function_declarator(node)
            name = text_of(declarator.child_by_field_name("declarator")) if declarator else ""
            if declarator is None or not name:
                continue
            body = node.child_by_field_name("body")
            specifiers = self._specifiers(node, body.start_byte if body else node.end_byte)
            yield FunctionDeclaration(
                name="::".join([*_scope_names(node), name]),
                is_kernel=b"__global__" in specifiers,
                is_ordinary=self._is_ordinary(declarator),
                is_template=node.parent is not None and node.parent.type == "template_declaration",
                is_definition=body is not None,
                parameters=_parameters(declarator),
                line=lexical.line_of(self.source, declarator.start_byte),
                launch_bounds=_launch_bounds(specifiers),
                body=(body.start_byte, body.end_byte) if body else (0, 0),
                template_parameters=_template_parameters(node),
            )

    def variables(self) -> Iterator[VariableDeclaration]:
        for node in descendants(self.root, frozenset({"declaration"}), _SCOPES):
            specifiers = self._specifiers(node, node.end_byte)
            kind = next((kind for word, kind in _VARIABLE_KINDS.items() if word in specifiers), None)
            if kind == "device" and b"__managed__" in specifiers:
                kind = "managed"
            if kind is None or b"__shared__" in specifiers or _function_declarator(node) is not None:
                continue
            if node.parent is not None and node.parent.type == "template_declaration":
                continue  # it has no address as long as nobody names an instance
            for declarator in node.children_by_field_name("declarator"):
                name = "::".join([*_scope_names(node), text_of(declared_name(declarator))])
                yield VariableDeclaration(name, kind, lexical.line_of(self.source, declarator.start_byte))

    def _is_ordinary(self, declarator: Node) -> bool:
        """Return whether what stands before the name of a function makes it no kernel.

        A macro of a header's that is called there is no part of the declaration for the parser.
        """
        end = declarator.start_byte
        start = 1 + max(self.code.rfind(mark, 0, end) for mark in (b";", b"{", b"}"))
        given = [self.macros.get(word, word) for word in _WORD.findall(self.code, start, end)]
        words = frozenset(_WORD.findall(b" ".join(given)))
        return b"__global__" not in words and (b"__device__" in words or words <= _ORDINARY_WORDS)

    def _specifiers(self, node: Node, end: int) -> bytes:
        """Return a declaration from the end of what precedes it, with the user's qualifier macros expanded."""
        before, parent = node.prev_sibling, node.parent
        # A tree begins at its first token, which may be behind qualifiers that were blanked for the parser.
        outer = parent.start_byte if parent is not None and parent.parent is not None else 0
        start = outer if before is None else before.end_byte
        region = self.code[min(start, node.start_byte) : end]
        if not self.macros:
            return region
        return _WORD.sub(lambda match: self.macros.get(match[0], match[0]), region)


def _template_parameters(node: Node) -> str:
    parent = node.parent
    is_template = parent is not None and parent.type == "template_declaration"
    return text_of(parent.child_by_field_name("parameters")) if parent is not None and is_template else ""


def _function_declarator(node: Node) -> Node | None:
    declarator = node.child_by_field_name("declarator")
    while declarator is not None and declarator.type in {"pointer_declarator", "reference_declarator"}:
        declarator = declarator.child_by_field_name("declarator") or last_named(declarator)
    if declarator is None or declarator.type != "function_declarator":
        return None
    inner = declarator.child_by_field_name("declarator")
    return None if inner is None or inner.type == "parenthesized_declarator" else declarator


def _parameters(declarator: Node) -> tuple[ParameterDeclaration, ...]:
    node = declarator.child_by_field_name("parameters")
    result = []
    for parameter in node.named_children if node else ():
        if parameter.type in _PARAMETERS:
            name = declared_name(parameter.child_by_field_name("declarator"))
            result.append(ParameterDeclaration(text_of(name), _type_text(parameter, name)))
    return tuple(result) if [item.type for item in result] != ["void"] else ()


def _type_text(parameter: Node, name: Node | None) -> str:
    """Return a parameter's text without its name and default value."""
    text = parameter.text or b""
    default = parameter.child_by_field_name("default_value")
    end = default.start_byte - parameter.start_byte if default else len(text)
    if name is not None:
        start = name.start_byte - parameter.start_byte
        text = text[:start] + text[start + len(name.text or b"") : end]
    else:
        text = text[:end]
    return " ".join(text.decode(errors="replace").rstrip("= \t\n").split())


def _scope_names(node: Node) -> list[str]:
    names: list[str] = []
    parent = node.parent
    while parent is not None:
        if parent.type == "namespace_definition" or parent.type in _CLASS_SCOPES:
            name = text_of(parent.child_by_field_name("name"))
            if name:
                names.insert(0, name)
        parent = parent.parent
    return names


def _launch_bounds(specifiers: bytes) -> str:
    match = _LAUNCH_BOUNDS.search(specifiers)
    if match is None:
        return ""
    arguments = specifiers[match.end() + 1 : lexical.closing(specifiers, match.end()) - 1]
    return _first_argument(arguments.decode(errors="replace")).strip()


def _first_argument(arguments: str) -> str:
    depth = 0
    for position, character in enumerate(arguments):
        depth += (character in "([{<") - (character in ")]}>")
        if character == "," and depth == 0:
            return arguments[:position]
    return arguments
