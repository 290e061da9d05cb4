"""Loops inside a kernel that all threads go through alike, made by strips of threads together.

    float sum = 0;                                              // before
    for (int k = 0; k < n; ++k) sum += a[k] * b[k * w + i];     // the loop
    c[i] = sum;                                                 // after

Thread by thread nothing in there becomes a vector: every sum has its order. In a strip the innermost loop
goes over threads, and what a thread has of its own lies in arrays. That is the same as one thread after
the other if what stands before, and the loop, write no memory and read none that is written after it. The
former is seen here, the latter is found out at run time, by the ends of what is read and written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from gridstride._syntax.parser import text_of
from gridstride.targets.cpu.flat import vocabulary
from gridstride.targets.cpu.flat.admission import INTEGER_TYPE, Text, declared_names, parameters_of, walk
from gridstride.targets.cpu.flat.lanes import LaneText, element_of, pointer_parameters
from gridstride.targets.cpu.flat.linear import (
    Conversion,
    Lane,
    Leaf,
    Linear,
    LinearReader,
    Operation,
    depends_on_lane,
    exact,
    integer_type,
    wide,
)
from gridstride.targets.cpu.flat.strides import bound_of, changes, step_of

if TYPE_CHECKING:
    from collections.abc import Set

    from tree_sitter import Node

#: What a loop and what stands before it is made of: no jumps, no loops, nothing that refers to anything.
_COMPUTATIONS = frozenset(
    {
        "compound_statement",
        "declaration",
        "init_declarator",
        "expression_statement",
        "if_statement",
        "else_clause",
    }
    | {"condition_clause", "primitive_type", "sized_type_specifier", "type_identifier", "type_qualifier"}
    | {"identifier", "field_identifier", "argument_list", "subscript_argument_list", "binary_expression"}
    | {"unary_expression", "assignment_expression", "update_expression", "parenthesized_expression"}
    | {
        "conditional_expression",
        "cast_expression",
        "call_expression",
        "field_expression",
        "subscript_expression",
    }
    | {"number_literal", "true", "false", "initializer_list", "type_descriptor", "comment"}
    | {"preproc_call", "preproc_directive", "preproc_arg"}
)
_SCALARS = frozenset({"primitive_type", "sized_type_specifier"})
_WORD = re.compile(r"[A-Za-z_]\w*")
_COMPONENTS = "xyzw"


class Private(NamedTuple):
    """A variable of each thread: its type, and whether the loop may change it."""

    name: str
    ctype: str
    is_changed: bool

    def parts(self) -> list[tuple[str, str]]:
        """Return the names of its arrays, and what is kept in each: a vector has one for each component."""
        own = f"gridstride_own_{self.name}"
        count = _component_count(self.ctype)
        if count == 0:
            return [(own, self.name)]
        return [(f"{own}_{part}", f"{self.name}.{part}") for part in _COMPONENTS[:count]]

    def arrays(self) -> str:
        """Return the declarations of its arrays."""
        return " ".join(
            f"decltype({self.ctype}::{value[-1]}) {name}[gridstride_strip_width];"
            if value != self.name
            else f"{self.ctype} {name}[gridstride_strip_width];"
            for name, value in self.parts()
        )

    def kept(self) -> str:
        """Return the statements that keep it for one thread."""
        return " ".join(f"{name}[gridstride_lane] = {value};" for name, value in self.parts())

    def taken(self) -> str:
        """Return the declaration that takes it out again."""
        values = ", ".join(f"{name}[gridstride_lane]" for name, _ in self.parts())
        return f"{self.ctype} {self.name}{{{values}}};"


class Strip(NamedTuple):
    """A kernel with a loop that is made by strips.

    Attributes
    ----------
    variable, ctype : str
        The loop's.
    first, bound, step : Linear
    before, loop, after : str
        For one thread.
    privates : list of Private
        What the threads carry from one part to the next.
    reads, writes : list of (pointer, Linear)
    indices : list of Linear
        Those that may not fit their types.
    """

    variable: str
    ctype: str
    first: Linear
    bound: Linear
    step: Linear
    before: str
    loop: str
    after: str
    privates: list[Private]
    reads: list[tuple[str, Linear]]
    writes: list[tuple[str, Linear]]
    indices: list[Linear]

    def holes(self) -> Mapping[str, str]:
        """Return what fills the template."""
        changed = [item for item in self.privates if item.is_changed]
        checks = (
            exact(Conversion(self.ctype, Operation("+", self.bound, self.step))),
            f"GRIDSTRIDE_COMPARED({exact(Conversion(self.ctype, self.first))}, {exact(self.bound)})",
        )
        return {
            "variable": self.variable,
            "ctype": self.ctype,
            "first": wide(self.first),
            "bound": wide(self.bound),
            "step": wide(self.step),
            "arrays": " ".join(item.arrays() for item in self.privates),
            "before": self.before,
            "kept": " ".join(item.kept() for item in self.privates),
            "taken": " ".join(item.taken() for item in self.privates),
            "loop": self.loop,
            "kept_again": " ".join(item.kept() for item in changed),
            "after": self.after,
            "compared": " ".join(f"{item};" for item in checks),
            "indices": " ".join(
                f"{item};"
                for item in dict.fromkeys(exact(Conversion("long", index)) for index in self.indices)
            ),
            "reads": _additions("gridstride_reads", self.reads),
            "writes": _additions("gridstride_writes", self.writes),
            "ranges": " ".join(
                f"gridstride_range {kind}_{name};"
                for kind, items in (("gridstride_reads", self.reads), ("gridstride_writes", self.writes))
                for name in _names(items)
            ),
            "meets": " || ".join(
                f"gridstride_reads_{first}.__meets(gridstride_writes_{second})"
                for first in _names(self.reads)
                for second in _names(self.writes)
            )
            or "false",
        }


class StripFinder:
    """Find the loop of a kernel that strips can make.

    Parameters
    ----------
    source : bytes
    kernel : Node
    text : Text
        What the text declares.
    reader : LinearReader
    changed : set of str
        The variables that may get another value after their first.
    """

    def __init__(
        self, source: bytes, kernel: Node, text: Text, reader: LinearReader, changed: Set[str]
    ) -> None:
        self._source = source
        self._kernel = kernel
        self._text = text
        self._reader = reader
        self._changed = changed
        self._declared = declared_names(kernel)
        self._pointers = pointer_parameters(kernel)
        self._lanes = LaneText(source, kernel, reader)
        self._reads: list[tuple[str, Linear]] = []
        self._writes: list[tuple[str, Linear]] = []

    def find(self, statements: Sequence[Node]) -> Strip | None:
        """Return the loop among a kernel's statements, without its guards; None if there is none."""
        if any(name.startswith("operator") for name in self._text.functions):
            return None
        position = next((at for at, node in enumerate(statements) if node.type == "for_statement"), None)
        if position is None:
            return None
        loop = statements[position]
        header = self._header(loop)
        body = loop.child_by_field_name("body")
        if header is None or body is None:
            return None
        before, after = statements[:position], statements[position + 1 :]
        self._reader.variables[header[0]] = Leaf(header[0])
        try:
            return self._strip(header, before, body, after)
        finally:
            del self._reader.variables[header[0]]

    def _strip(
        self,
        header: tuple[str, str, Linear, Linear, Linear],
        before: Sequence[Node],
        body: Node,
        after: Sequence[Node],
    ) -> Strip | None:
        if not all(node.type in ("declaration", "comment") for node in before) or not after:
            return None
        if not all(self._only_computes(node) for node in (*before, body)):
            return None
        if not all(_stride_of(index) in (0, 1) for _, index in self._elements(body)):
            return None
        if not all(self._is_understood(node) for node in after):
            return None
        first, second, third = (" ".join(map(self._lanes.of, part)) for part in (before, [body], after))
        privates = self._privates(before, set(_WORD.findall(second + third)))
        if privates is None:
            return None
        parts = first, second, third, privates
        return Strip(*header, *parts, self._reads, self._writes, self._lanes.indices)

    def _header(self, loop: Node) -> tuple[str, str, Linear, Linear, Linear] | None:
        declaration, body = loop.child_by_field_name("initializer"), loop.child_by_field_name("body")
        if declaration is None or declaration.type != "declaration" or body is None:
            return None
        declarators = declaration.children_by_field_name("declarator")
        ctype = integer_type(text_of(declaration.child_by_field_name("type")))
        if len(declarators) != 1 or declarators[0].type != "init_declarator" or not ctype:
            return None
        name = text_of(declarators[0].child_by_field_name("declarator"))
        if self._declared.count(name) != 1 or changes(body, name):
            return None
        first = self._reader.read(declarators[0].child_by_field_name("value"))
        bound, step = bound_of(loop, name, self._reader), self._step(loop, name)
        if first is None or bound is None or step is None or any(map(depends_on_lane, (first, bound, step))):
            return None
        # A loop with a constant end is unrolled before vectors are made.
        parameters = {word for node in parameters_of(self._kernel) for word in _WORD.findall(text_of(node))}
        return (name, ctype, first, bound, step) if parameters & set(_WORD.findall(wide(bound))) else None

    def _step(self, loop: Node, name: str) -> Linear | None:
        update = loop.child_by_field_name("update")
        if update is not None and update.type == "update_expression":
            is_counted = text_of(update).replace(" ", "") in (f"{name}++", f"++{name}")
            return Leaf("1") if is_counted else None
        return step_of(loop, name, self._reader)

    # ---- what the parts do ----

    def _only_computes(self, part: Node) -> bool:
        """Return whether a part changes nothing but local variables, and reads elements that are understood."""
        for node in walk(part):
            if node.type not in _COMPUTATIONS:
                return False
            if node.type in ("assignment_expression", "update_expression"):
                target = node.child_by_field_name("left") or node.child_by_field_name("argument")
                if any(item.type == "subscript_expression" for item in walk(target)):
                    return False
        return self._reads_known(part)

    def _is_understood(self, part: Node) -> bool:
        """Return whether it is known which elements a part behind the loop writes."""
        for node in walk(part):
            if node.type not in _COMPUTATIONS:
                return False
            target = node.child_by_field_name("left") or node.child_by_field_name("argument")
            if node.type in ("assignment_expression", "update_expression"):
                while target is not None and target.type == "field_expression":
                    target = target.child_by_field_name("argument")
                element = element_of(target, self._pointers, self._reader) if target is not None else None
                if element is not None:
                    self._writes.append(element)
                elif target is None or target.type != "identifier":
                    return False
        return self._reads_known(part, is_noted=False)

    def _reads_known(self, part: Node, *, is_noted: bool = True) -> bool:
        if not all(
            self._is_known(node) for node in walk(part) if node.type in ("identifier", "call_expression")
        ):
            return False
        count = sum(node.type == "subscript_expression" for node in walk(part))
        elements = list(self._elements(part))
        if is_noted:
            self._reads += elements
        return count == len(elements)

    def _elements(self, part: Node) -> Iterator[tuple[str, Linear]]:
        for node in walk(part):
            element = element_of(node, self._pointers, self._reader)
            if element is not None:
                yield element

    def _is_known(self, node: Node) -> bool:
        """Return whether a name stands for a value of the thread, or a call for a computation on its arguments."""
        if node.type == "call_expression":
            function = node.child_by_field_name("function")
            name = text_of(function).partition("<")[0]
            is_foreign = name in self._text.functions or name in self._text.types or name in self._declared
            is_cast = function is not None and function.type in _SCALARS
            is_loading = name in vocabulary.LOADS or name in vocabulary.STORES
            return is_cast or (vocabulary.is_computation(name) and not is_foreign and not is_loading)
        name, parent = text_of(node), node.parent
        if name in self._pointers:
            return parent is not None and parent.type == "subscript_expression"
        return name not in self._text.variables or name in self._declared

    # ---- what a thread has of its own ----

    def _privates(self, before: Sequence[Node], words: set[str]) -> list[Private] | None:
        """Return the variables that are declared before the loop and used later; None if one cannot be kept."""
        found = []
        for declaration in before:
            written = declaration.child_by_field_name("type")
            ctype = text_of(written)
            is_plain = written is not None and (written.type in _SCALARS or self._is_kept_whole(ctype))
            for declarator in declaration.children_by_field_name("declarator"):
                inner = declarator.child_by_field_name("declarator") or declarator
                name = text_of(inner)
                if name not in words:
                    continue
                if not is_plain or inner.type != "identifier" or self._declared.count(name) != 1:
                    return None
                found.append(Private(name, ctype, name in self._changed))
        return found

    def _is_kept_whole(self, ctype: str) -> bool:
        """Return whether arrays of a named type can be made: vectors, integers, parameters of the kernel's template."""
        parent = self._kernel.parent
        parameters = parent.child_by_field_name("parameters") if parent is not None else None
        types = (text_of(node) for node in walk(parameters) if node.type == "type_parameter_declaration")
        is_parameter = any(_WORD.findall(item)[-1:] == [ctype] for item in types)
        return vocabulary.is_vector(ctype) or INTEGER_TYPE.fullmatch(ctype) is not None or is_parameter


def _component_count(ctype: str) -> int:
    """Return how many components a type has, 0 for numbers."""
    if not vocabulary.is_vector(ctype):
        return 0
    digits = re.findall(r"\d", ctype)
    return int(digits[0])


def _stride_of(index: Linear) -> int | None:
    """Return how far apart the elements of neighboring threads are; None where it takes a variable to say so."""
    match index:
        case Lane():
            return 1
        case Leaf():
            return 0
        case Conversion(_, operand):
            return _stride_of(operand)
        case Operation("*", left, right):
            return 0 if _stride_of(left) == _stride_of(right) == 0 else None
        case Operation(operator, left, right):
            first, second = _stride_of(left), _stride_of(right)
            if first is None or second is None:
                return None
            return first + second if operator == "+" else first - second
    return None


def _names(items: Sequence[tuple[str, Linear]]) -> list[str]:
    return list(dict.fromkeys(name for name, _ in items))


def _additions(kind: str, items: Sequence[tuple[str, Linear]]) -> str:
    return " ".join(dict.fromkeys(f"{kind}_{name}.__add(&{name}[{wide(index)}]);" for name, index in items))
