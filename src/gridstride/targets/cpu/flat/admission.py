"""Which kernels the flat tier takes: those in which every construct is known.

A construct that is not listed here keeps a kernel among the fibers, which run everything. What a kernel
calls is looked at as well: by name, with all functions of that name, and all operators and constructors
of the text, since those are called without a name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from gridstride._syntax.parser import declared_name, last_named, text_of
from gridstride.targets.cpu.flat import vocabulary
from gridstride.targets.cpu.flat.linear import member_text
from gridstride.targets.cpu.flat.obstacles import Obstacle

if TYPE_CHECKING:
    from tree_sitter import Node

_STATEMENTS = """
    compound_statement declaration expression_statement if_statement else_clause condition_clause for_statement
    while_statement do_statement switch_statement case_statement break_statement continue_statement
    return_statement comment alias_declaration type_definition static_assert_declaration init_statement
"""
_DECLARATORS = """
    init_declarator pointer_declarator reference_declarator array_declarator parenthesized_declarator
    abstract_pointer_declarator abstract_reference_declarator abstract_array_declarator type_descriptor
    primitive_type sized_type_specifier placeholder_type_specifier auto decltype template_type
    template_argument_list type_qualifier parameter_list parameter_declaration lambda_declarator
    lambda_capture_specifier lambda_default_capture lambda_capture_initializer
    field_initializer_list field_initializer
"""
_EXPRESSIONS = """
    subscript_expression number_literal char_literal character escape_sequence true false null
    string_literal string_content
    binary_expression unary_expression update_expression assignment_expression parenthesized_expression
    conditional_expression cast_expression argument_list subscript_argument_list pointer_expression
    comma_expression sizeof_expression alignof_expression initializer_list compound_literal_expression
    template_function lambda_expression this initializer_pair field_designator
"""
_KNOWN = frozenset((_STATEMENTS + _DECLARATORS + _EXPRESSIONS).split())
_LOOPS = frozenset({"for_statement", "while_statement", "do_statement"})
_UNROLL = re.compile(r"#\s*pragma\s+(?:GCC\s+)?unroll\b")
_QUALIFIERS = frozenset({"const", "constexpr", "__restrict__", "__restrict", "restrict", "mutable"})
_IMPLICIT = re.compile(r"operator\b|~")
INTEGER_TYPE = re.compile(r"(?:u?int(?:8|16|32|64|ptr)|size|ptrdiff)_t|u(?:char|short|int|long)")
_SHARED = "uses `__shared__` memory, with which threads wait for each other"
_WORD = re.compile(rb"\b[A-Za-z_]\w*")
_PLAIN_MACRO = re.compile(
    r"(?:(?:const|signed|unsigned|char|short|int|long|float|double|bool|void|half|__half|u?int\d+_t|size_t|inline"
    r"|__restrict__|__restrict|__forceinline__|__inline__|__noinline__|__device__|__host__|__global__)\b|\*|\s)*"
)
_NUMBER = re.compile(r"(?:0[xX][0-9a-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)[uUlLfF]*")
_ARITHMETIC = re.compile(r"[\s\w()+\-*/%<>&|^~!=?:]+")


class Text(NamedTuple):
    """What a text declares besides its kernels.

    Attributes
    ----------
    functions : mapping of name to definitions
        By names without namespaces and classes.
    types, classes, variables : frozenset of str
        Names of types, namespaces and template parameters; of structs, classes and unions among them; of
        variables and enumerators.
    macros : mapping of name to bodies
        All that a name is defined as, wherever.
    code : bytes
        The text without comments and the insides of strings.
    """

    functions: Mapping[str, list[Node]]
    types: frozenset[str]
    classes: frozenset[str]
    variables: frozenset[str]
    macros: Mapping[str, list[str]]
    code: bytes


class Admission:
    """Check kernels of one text."""

    def __init__(self, text: Text) -> None:
        self.text = text
        self._outcomes: dict[int, Obstacle | None] = {}

    def check(self, kernel: Node) -> None:
        """Raise `Obstacle` at the first construct of a kernel, or of what it calls, that is not known."""
        _Walk(self, kernel, is_kernel=True).run()
        for name in self.text.functions:
            if _IMPLICIT.match(name) or name in self.text.types:  # operators, destructors; constructors
                self.check_functions(name)

    def check_functions(self, name: str) -> None:
        """Raise `Obstacle` unless all functions of a name are understood."""
        for definition in self.text.functions.get(name, ()):
            if definition.id not in self._outcomes:
                self._outcomes[definition.id] = None  # it may call itself
                try:
                    _Walk(self, definition, is_kernel=False).run()
                except Obstacle as obstacle:
                    self._outcomes[definition.id] = obstacle
            outcome = self._outcomes[definition.id]
            if outcome is not None:
                raise outcome

    def check_call(self, node: Node, name: str) -> None:
        """Raise `Obstacle` unless calling a name is understood."""
        self.check_functions(name)
        is_known = (
            name in self.text.functions
            or name in self.text.types
            or name in vocabulary.ATOMICS
            or name in vocabulary.STORES
            or vocabulary.is_computation(name)
        )
        if not is_known or name in self.text.variables:
            raise Obstacle(node, f"calls `{name}`")

    def check_name(self, node: Node, name: str) -> None:
        """Raise `Obstacle` unless a name that is not local is one of the text's, or a known constant."""
        self.check_functions(name)
        is_known = (
            name in self.text.macros
            or name in self.text.types
            or name in self.text.variables
            or name in self.text.functions
            or name in vocabulary.CONSTANTS
        )
        if not is_known:
            raise Obstacle(node, f"uses `{name}`, which is not known")

    def check_type(self, node: Node, name: str) -> None:
        """Raise `Obstacle` unless a type that is not local is one of the text's, or CUDA's."""
        is_known = name in self.text.macros or name in self.text.types or vocabulary.is_computation(name)
        if not is_known and not INTEGER_TYPE.fullmatch(name):
            is_shared = name.startswith("gridstride_type_")
            raise Obstacle(node, _SHARED if is_shared else f"uses the type `{name}`")

    def check_macros(self, function: Node) -> None:
        """Raise `Obstacle` where a function uses a macro that stands for more than numbers, a type or qualifiers."""
        for match in _WORD.finditer(self.text.code, function.start_byte, function.end_byte):
            name = match[0].decode()
            for body in self.text.macros.get(name, ()):
                if not (_PLAIN_MACRO.fullmatch(body) or is_constant(body, self.text.macros)):
                    reason = f"uses the macro `{name}`, which is more than a number or a type"
                    raise Obstacle(function, reason, match.start())


class _Walk:
    """One function: every node must be known."""

    def __init__(self, admission: Admission, function: Node, is_kernel: bool) -> None:
        self._admission = admission
        self._function = function
        self._is_kernel = is_kernel
        self._local = frozenset(declared_names(function))
        self._callable = callable_names(function)
        self._special: dict[str, Callable[[Node], Iterable[Node | None]]] = {
            "identifier": self._identifier,
            "type_identifier": self._type,
            "call_expression": self._call,
            "field_expression": self._field,
            "qualified_identifier": self._qualified,
            "type_qualifier": self._qualifier,
            "preproc_call": self._pragma,
        }

    def run(self) -> None:
        if self._function.has_error:
            raise Obstacle(_first_error(self._function), "the parser does not understand this")
        self._admission.check_macros(self._function)
        for parameter in parameters_of(self._function):
            self._visit(parameter)
        for child in self._function.named_children:
            if child.type in ("field_initializer_list", "compound_statement"):
                self._visit(child)

    def _visit(self, node: Node) -> None:
        children: Iterable[Node | None]
        special = self._special.get(node.type)
        if special is not None:
            children = special(node)
        elif node.type in _KNOWN:
            children = node.named_children
        else:
            raise Obstacle(node, _description(node))
        for child in children:
            if child is not None:
                self._visit(child)

    def _identifier(self, node: Node) -> Iterable[Node | None]:
        name = text_of(node)
        if name in vocabulary.INDICES:
            raise Obstacle(node, f"uses `{name}` other than by its members")
        if name not in self._local:
            self._admission.check_name(node, name)
        return ()

    def _type(self, node: Node) -> Iterable[Node | None]:
        if text_of(node) not in self._local:
            self._admission.check_type(node, text_of(node))
        return ()

    def _call(self, node: Node) -> Iterable[Node | None]:
        function, arguments = node.child_by_field_name("function"), node.child_by_field_name("arguments")
        assert function is not None
        match function.type:
            case "primitive_type" | "sized_type_specifier":
                return (arguments,)
            case "identifier" if text_of(function) in self._callable:
                return (arguments,)
            case "identifier":
                self._check_call(node, function)
                return (arguments,)
            case "template_function":
                self._check_call(node, function.child_by_field_name("name"))
                return (function.child_by_field_name("arguments"), arguments)
            case "field_expression":
                self._check_call(node, function.child_by_field_name("field"))
                return (function.child_by_field_name("argument"), arguments)
            case "qualified_identifier":
                self._visit(function)
                return (arguments,)
        raise Obstacle(function, f"calls what `{text_of(function)[:40]}` leads to")

    def _check_call(self, call: Node, function: Node | None) -> None:
        name = text_of(function)
        if function is None or function.type not in ("identifier", "field_identifier") or name in self._local:
            raise Obstacle(call, f"calls what `{name[:40]}` leads to")
        self._admission.check_call(function, name)
        if name in vocabulary.ATOMICS:
            self._atomic(call, name)

    def _atomic(self, call: Node, name: str) -> None:
        is_used = call.parent is not None and call.parent.type != "expression_statement"
        if not is_used:
            return
        if not self._is_kernel:
            raise Obstacle(call, f"looks at what `{name}` returns in a function that is called")
        if any(node.type in _LOOPS for node in _around(call, self._function)):
            raise Obstacle(
                call, f"looks at what `{name}` returns in a loop, perhaps to wait for other threads"
            )

    def _field(self, node: Node) -> Iterable[Node | None]:
        argument = node.child_by_field_name("argument")
        if argument is None or text_of(argument) not in vocabulary.INDICES:
            return (argument,)
        if member_text(node) is None:
            raise Obstacle(node, f"uses `{text_of(node)}`")
        if not self._is_kernel:
            raise Obstacle(node, f"uses `{text_of(node)}` in a function that is called")
        return ()

    def _qualified(self, node: Node) -> Iterable[Node | None]:
        scope, name = node.child_by_field_name("scope"), node.child_by_field_name("name")
        if scope is None or name is None or text_of(scope) not in self._admission.text.types:
            raise Obstacle(node, f"uses `{text_of(node)}`")
        return (name,)

    def _qualifier(self, node: Node) -> Iterable[Node | None]:
        if text_of(node) == "volatile":
            raise Obstacle(node, "uses `volatile` memory, which threads may wait for")
        if text_of(node) not in _QUALIFIERS:
            raise Obstacle(node, _description(node))
        return ()

    def _pragma(self, node: Node) -> Iterable[Node | None]:
        if not _UNROLL.match(text_of(node)):
            raise Obstacle(node, _description(node))
        return ()


def walk(node: Node | None) -> Iterator[Node]:
    """Yield a node and all named nodes in it, in source order."""
    if node is None:
        return
    yield node
    for child in node.named_children:
        yield from walk(child)


def declared_names(function: Node) -> list[str]:
    """Return the names that a function declares, as often as it declares them."""
    names = []
    for node in walk(function):
        if node.type in ("parameter_declaration", "optional_parameter_declaration"):
            names.append(text_of(declared_name(node.child_by_field_name("declarator"))))
        elif node.type in ("declaration", "condition_clause", "init_statement"):
            names += [text_of(declared_name(item)) for item in node.children_by_field_name("declarator")]
        elif node.type == "alias_declaration":
            names.append(text_of(node.child_by_field_name("name")))
        elif node.type == "type_definition":
            names += [text_of(item) for item in node.children_by_field_name("declarator")]
        elif node.type == "lambda_capture_initializer":
            names.append(text_of(node.named_children[0]))
    return [name for name in names if name]


def parameters_of(function: Node) -> list[Node]:
    """Return the parameters of a function."""
    declarator = function.child_by_field_name("declarator")
    while declarator is not None and declarator.type != "function_declarator":
        declarator = declarator.child_by_field_name("declarator") or last_named(declarator)
    parameters = declarator.child_by_field_name("parameters") if declarator is not None else None
    return (
        [node for node in parameters.named_children if node.type != "comment"]
        if parameters is not None
        else []
    )


def callable_names(function: Node) -> frozenset[str]:
    """Return the local names that may be called: lambdas, and parameters of class types."""
    names = [
        text_of(node.child_by_field_name("declarator"))
        for node in walk(function)
        if (node.type == "init_declarator" and _is_lambda(node.child_by_field_name("value")))
        or (node.type == "parameter_declaration" and _type_kind(node) == "type_identifier")
    ]
    declared = declared_names(function)
    return frozenset(name for name in names if declared.count(name) == 1)


def is_constant(body: str, macros: Mapping[str, list[str]], depth: int = 0) -> bool:
    """Return whether a macro's body is a number, or computed from numbers."""
    rest = _NUMBER.sub("0", body)
    for name in re.findall(r"[A-Za-z_]\w*", rest):
        bodies = macros.get(name, [])
        if depth > 8 or not bodies or not all(is_constant(item, macros, depth + 1) for item in bodies):
            return False
    return bool(body.strip()) and _ARITHMETIC.fullmatch(rest) is not None


def _around(node: Node, outermost: Node) -> Iterator[Node]:
    parent = node.parent
    while parent is not None and parent.id != outermost.id:
        yield parent
        parent = parent.parent


def _is_lambda(node: Node | None) -> bool:
    return node is not None and node.type == "lambda_expression"


def _type_kind(node: Node) -> str:
    written = node.child_by_field_name("type")
    return written.type if written is not None else ""


def _description(node: Node) -> str:
    if "gridstride_type_" in text_of(node):
        return _SHARED
    return f"`{text_of(node)[:40]}` ({node.type.replace('_', ' ')}) is not known to the flat tier"


def _first_error(node: Node) -> Node:
    for child in walk(node):
        if child.type == "ERROR" or child.is_missing:
            return child
    return node
