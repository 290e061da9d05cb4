"""Read the mangled names of the Itanium C++ ABI: which function or variable, of which types.

Only what can appear in the signature of a kernel is understood; anything else is an
`UnknownMangling`, never a wrong answer.
"""

from __future__ import annotations

import re
from typing import NamedTuple


class UnknownMangling(ValueError):
    """Report a mangled name, or a part of one, that this module does not read."""


class Builtin(NamedTuple):
    """Name a fundamental type."""

    name: str


class Name(NamedTuple):
    """Name a class, enumeration, function or variable: qualified text and template arguments."""

    text: str
    arguments: tuple[Node, ...] | None = None
    scope: Name | None = None


class Qualified(NamedTuple):
    """Add const, volatile, restrict to a type."""

    type: Node
    const: bool
    volatile: bool = False
    restrict: bool = False


class Pointer(NamedTuple):
    """Point (``*``) or refer (``&``, ``&&``) to a type."""

    target: Node
    symbol: str = "*"


class Array(NamedTuple):
    """Repeat a type `bound` times ("" for an unknown number)."""

    element: Node
    bound: str


class Function(NamedTuple):
    """Describe a function type."""

    result: Node
    parameters: tuple[Node, ...]


class Literal(NamedTuple):
    """Hold the value of a template argument that is no type."""

    type: Node
    value: str


class Pack(NamedTuple):
    """Hold the template arguments of a parameter pack."""

    items: tuple[Node, ...]


class Symbol(NamedTuple):
    """Describe a function or a variable: its name, and of a function the parameter types."""

    name: Name
    parameters: tuple[Node, ...] | None = None


Node = Builtin | Name | Qualified | Pointer | Array | Function | Literal | Pack | Symbol


def parse(mangled: str) -> Symbol:
    """Return what a mangled name says; a name that is not mangled is that of a C symbol.

    Raises
    ------
    UnknownMangling
    """
    if not mangled.startswith("_Z"):
        return Symbol(Name(mangled))
    reader = _Reader(mangled, 2)
    symbol = reader.encoding()
    if reader.position != len(mangled) and mangled[reader.position] not in ".$":
        raise reader.unknown("end")
    return symbol


def spell(node: Node, declarator: str = "") -> str:
    """Return the C++ spelling of a type, around a declarator if one is given."""
    match node:
        case Builtin(name):
            return _join(name, declarator)
        case Name():
            return _join(_spell_name(node), declarator)
        case Qualified():
            return _spell_qualified(node, declarator)
        case Pointer(target, symbol):
            inner = symbol + declarator
            return spell(target, f"({inner})" if isinstance(target, Array | Function) else inner)
        case Array(element, bound):
            return spell(element, f"{declarator}[{bound}]")
        case Function(result, parameters):
            return spell(result, f"{declarator}({_spell_list(parameters)})")
        case Literal(_, value):
            return value
        case Pack(items):
            return _spell_list(items)
        case Symbol(name, parameters):
            return spell(name) + ("" if parameters is None else f"({_spell_list(parameters)})")


def _spell_list(nodes: tuple[Node, ...]) -> str:
    return ", ".join(text for text in map(spell, nodes) if text)


def _spell_name(name: Name) -> str:
    scope = f"{_spell_name(name.scope)}::" if name.scope else ""
    arguments = "" if name.arguments is None else f"<{_spell_list(name.arguments)}>"
    return scope + name.text + arguments


def _spell_qualified(node: Qualified, declarator: str) -> str:
    words = [word for word, present in (("const", node.const), ("volatile", node.volatile)) if present]
    if isinstance(node.type, Pointer):
        return spell(node.type, " ".join(words) + (f" {declarator}" if declarator and words else declarator))
    return " ".join([*words, spell(node.type, declarator)])


def _join(name: str, declarator: str) -> str:
    return f"{name} {declarator}" if declarator else name


_BUILTINS = {
    "v": "void", "w": "wchar_t", "b": "bool", "c": "char", "a": "signed char", "h": "unsigned char", "s": "short",
    "t": "unsigned short", "i": "int", "j": "unsigned int", "l": "long", "m": "unsigned long", "x": "long long",
    "y": "unsigned long long", "n": "__int128", "o": "unsigned __int128", "f": "float", "d": "double",
    "e": "long double", "g": "__float128", "z": "...",
}  # fmt: skip
_TWO_LETTER_BUILTINS = {
    "Dn": "decltype(nullptr)", "Ds": "char16_t", "Di": "char32_t", "Du": "char8_t", "Dh": "_Float16",
}  # fmt: skip
_STANDARD = {"t": "std", "a": "std::allocator", "b": "std::basic_string", "s": "std::string"}
_SUFFIXED_BUILTINS = re.compile(r"DF(\d+)(_|b)")


class _Reader:
    """Walk over a mangled name; `substitutions` are the components that ``S_`` refers to."""

    def __init__(self, text: str, position: int) -> None:
        self.text = text
        self.position = position
        self.substitutions: list[Node] = []
        self.template_arguments: tuple[Node, ...] = ()

    def unknown(self, wanted: str) -> UnknownMangling:
        return UnknownMangling(f"{self.text!r}: no {wanted} at position {self.position}")

    def peek(self, prefix: str) -> bool:
        return self.text.startswith(prefix, self.position)

    def take(self, prefix: str) -> bool:
        if self.peek(prefix):
            self.position += len(prefix)
            return True
        return False

    def expect(self, prefix: str) -> None:
        if not self.take(prefix):
            raise self.unknown(repr(prefix))

    def match(self, pattern: str, wanted: str) -> str:
        found = re.compile(pattern).match(self.text, self.position)
        if not found:
            raise self.unknown(wanted)
        self.position = found.end()
        return found[0]

    def remember(self, node: Node) -> Node:
        self.substitutions.append(node)
        return node

    # ---- symbols and names ----

    def encoding(self) -> Symbol:
        outer = self.template_arguments
        name = self.name()
        if self.position == len(self.text) or self.text[self.position] in "E.$":
            return Symbol(name)
        self.template_arguments = name.arguments or ()
        if name.arguments is not None:
            self.type()  # the result, which only template functions mention
        parameters = self.types_until("E.$")
        self.template_arguments = outer
        return Symbol(name, () if parameters == (Builtin("void"),) else parameters)

    def types_until(self, ends: str) -> tuple[Node, ...]:
        types = []
        while self.position < len(self.text) and self.text[self.position] not in ends:
            types.append(self.type())
        return tuple(types)

    def name(self) -> Name:
        if self.take("N"):
            return self.nested_name()
        if self.peek("S") and not self.peek("St"):
            found = self.substitution()
            return self.with_arguments(found)
        scope = Name("std") if self.take("St") else None
        name = Name(self.source_name(), scope=scope)
        if self.peek("I"):
            self.remember(name)
            return self.with_arguments(name)
        return name

    def nested_name(self) -> Name:
        self.match("r?V?K?", "qualifiers")
        name: Name | None = None
        remembered = False
        while not self.take("E"):
            if self.peek("S") and not self.peek("St"):
                name, remembered = self.as_name(self.substitution()), False
                continue
            if self.take("St"):
                name, remembered = Name("std"), False
                continue
            if self.peek("I") and name is not None:
                name = self.with_arguments(name)
            elif self.peek("T"):
                name = self.as_name(self.template_parameter())
            else:
                name = Name(self.source_name(), scope=name)
            self.remember(name)
            remembered = True
        if name is None:
            raise self.unknown("name")
        if remembered:
            self.substitutions.pop()  # the whole is no prefix; as a type it is remembered by its reader
        return name

    def as_name(self, node: Node) -> Name:
        if not isinstance(node, Name):
            raise self.unknown("name of a scope")
        return node

    def with_arguments(self, node: Node) -> Name:
        name = self.as_name(node)
        return Name(name.text, self.arguments(), name.scope) if self.peek("I") else name

    def source_name(self) -> str:
        self.take("L")
        length = int(self.match(r"\d+", "name"))
        text = self.text[self.position : self.position + length]
        if len(text) < length:
            raise self.unknown(f"name of {length} characters")
        self.position += length
        while self.take("B"):
            self.source_name()  # an ABI tag
        return "(anonymous namespace)" if text.startswith("_GLOBAL__N") else text

    def substitution(self) -> Node:
        self.expect("S")
        letter = self.text[self.position : self.position + 1]
        if letter in _STANDARD:
            self.position += 1
            return Name(_STANDARD[letter])
        digits = self.match("[0-9A-Z]*_", "substitution")[:-1]
        index = int(digits, 36) + 1 if digits else 0
        return self.entry(self.substitutions, index)

    def template_parameter(self) -> Node:
        self.expect("T")
        digits = self.match("[0-9]*_", "template parameter")[:-1]
        return self.entry(self.template_arguments, int(digits) + 1 if digits else 0)

    def entry(self, nodes: list[Node] | tuple[Node, ...], index: int) -> Node:
        if index >= len(nodes):
            raise self.unknown(f"entry {index} of {len(nodes)}")
        return nodes[index]

    def arguments(self) -> tuple[Node, ...]:
        self.expect("I")
        items = []
        while not self.take("E"):
            items.append(self.argument())
        return tuple(items)

    def argument(self) -> Node:
        if self.take("J"):
            items = []
            while not self.take("E"):
                items.append(self.argument())
            return Pack(tuple(items))
        if self.take("L"):
            return self.literal()
        if self.take("X"):
            self.expect("ad")
            self.expect("L")
            address = self.literal()
            self.expect("E")
            return address
        return self.type()

    def literal(self) -> Node:
        if self.take("_Z"):
            symbol = self.encoding()
            self.expect("E")
            return symbol
        kind = self.type()
        value = self.match("n?[0-9a-f]*", "value").replace("n", "-")
        self.expect("E")
        if kind == Builtin("bool"):
            value = "true" if value == "1" else "false"
        return Literal(kind, value)

    # ---- types ----

    def type(self) -> Node:
        qualifiers = self.match("r?V?K?", "qualifiers")
        if qualifiers:
            inner = self.type()
            return self.remember(Qualified(inner, "K" in qualifiers, "V" in qualifiers, "r" in qualifiers))
        letter = self.text[self.position : self.position + 1]
        if letter in _BUILTINS:
            self.position += 1
            return Builtin(_BUILTINS[letter])
        pair = self.text[self.position : self.position + 2]
        if pair in _TWO_LETTER_BUILTINS:
            self.position += 2
            return Builtin(_TWO_LETTER_BUILTINS[pair])
        if found := _SUFFIXED_BUILTINS.match(self.text, self.position):
            self.position = found.end()
            return Builtin(f"std::bfloat{found[1]}_t" if found[2] == "b" else f"_Float{found[1]}")
        return self.compound_type(letter)

    def compound_type(self, letter: str) -> Node:
        symbols = {"P": "*", "R": "&", "O": "&&"}
        if letter in symbols:
            self.position += 1
            return self.remember(Pointer(self.type(), symbols[letter]))
        if letter == "A":
            self.position += 1
            bound = self.match("[0-9]*_", "array bound")[:-1]
            return self.remember(Array(self.type(), bound))
        if letter == "F" or self.peek("DoF"):
            return self.remember(self.function_type())
        if letter == "u":
            self.position += 1
            return self.remember(Builtin(self.source_name()))
        if letter == "T":
            found = self.remember(self.template_parameter())
            return self.remember(self.with_arguments(found)) if self.peek("I") else found
        if self.take("Dp"):
            return self.type()
        if letter == "S" and not self.peek("St"):
            found = self.substitution()
            return self.remember(self.with_arguments(found)) if self.peek("I") else found
        if letter == "N" or letter.isdigit() or letter in ("S", "L"):
            return self.remember(self.name())
        raise self.unknown("type")

    def function_type(self) -> Function:
        self.take("Do")
        self.expect("F")
        self.take("Y")
        result = self.type()
        parameters = self.types_until("E")
        self.expect("E")
        return Function(result, () if parameters == (Builtin("void"),) else parameters)
