"""The source pass: `__shared__` variables become references into the block's shared memory.

A declaration is replaced on its own lines, so that line numbers stay the user's:

    __shared__ float tile[8][9];
    typedef float gridstride_type_1[8][9]; struct gridstride_tag_1 {...}; gridstride_type_1& tile = ...;

The tag is a local type, hence another one in every instance of a template, as the variable is. What
the CPU target cannot run is refused here, by name and line.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, NamedTuple

from gridstride._syntax import lexical
from gridstride._syntax.declarations import bodies_of, functions_of, namespaces_at
from gridstride._syntax.parser import declared_name, parse
from gridstride.targets.cpu.casts import cast_edits
from gridstride.targets.cpu.edits import Edit, Refusal, Rewritten
from gridstride.targets.cpu.ptx import asm_edits, has_asm

if TYPE_CHECKING:
    from tree_sitter import Node

#: What no program may use on this target: pattern, name in the message ({} is the text), what to do instead.
REFUSALS: tuple[tuple[str, str, str], ...] = (
    (r"<<<", "a launch from device code (dynamic parallelism)", "launch the kernel from Python"),
    (r"\btexture(?=\s*<)", "a texture reference (`{}`), which CUDA 12 removed,", "read an array"),
    (r"\bsurface(?=\s*<)", "a surface reference (`{}`), which CUDA 12 removed,", "write an array"),
    (r"\b(?:cudaTextureObject_t|CUtexObject|tex(?:[123]D|Cubemap)\w*)", "a texture (`{}`)", "read an array"),
    (
        r"\b(?:cudaSurfaceObject_t|CUsurfObject|surf(?:[123]D|Cubemap)\w*)",
        "a surface (`{}`)",
        "write an array",
    ),
    (r"\bcuda\s*::\s*barrier\b", "cuda::barrier", "use __syncthreads() or cooperative_groups"),
    (r"\bcuda\s*::\s*(?:make_)?pipeline\b", "cuda::pipeline", "use plain loads and __syncthreads()"),
    (r"\bcuda\s*::\s*memcpy_async\b|\b__pipeline_\w+", "an asynchronous copy", "use plain loads"),
    (r"\b(?:__cluster_dims__|this_cluster|cluster_group)\b", "a thread block cluster", "use blocks"),
    (r"\b(?:nv)?wmma\s*::|\bnvcuda\s*::", "a tensor core operation (wmma)", "use plain arithmetic"),
)
_REFUSALS = tuple((re.compile(pattern.encode()), name, advice) for pattern, name, advice in REFUSALS)

_NOT_UNDERSTOOD = "this __shared__ declaration is not understood; declare one array with its type"
_SHARED = re.compile(rb"\b__shared__\b")
_STORAGE = re.compile(rb"\b(?:extern|static|inline|__shared__|__device__)\b|\"[^\"]*\"")
_BOUNDARY = re.compile(rb"[;{})]|(?<!:):(?!:)")
_IDENTIFIER = re.compile(rb"[A-Za-z_]\w*")
_CONDITIONAL = re.compile(rb"^[ \t]*#[ \t]*if", re.MULTILINE)


def needs_preprocessing(source: bytes) -> bool:
    """Return whether macros or conditionals decide about what the source pass looks for."""
    masked = lexical.mask(source)
    code = lexical.without_directives(masked)
    if _SHARED.search(code) and _CONDITIONAL.search(masked):
        return True
    watched = [_SHARED, *(pattern for pattern, _, _ in _REFUSALS)]
    if has_asm(code) or any(pattern.search(code) for pattern in watched[1:]):
        return True  # perhaps in a branch that is not taken
    bodies = lexical.macros(source, masked).values()
    return any(has_asm(body) or any(pattern.search(body) for pattern in watched) for body in bodies)


def rewrite(source: bytes, kernels: Collection[str], view: bytes | None = None) -> Rewritten:
    """Rewrite a text.

    Parameters
    ----------
    source : bytes
    kernels : collection of str
        Qualified names of the kernels, whose variables never live together.
    view : bytes, optional
        The same text with what is not the user's blanked out.

    Raises
    ------
    Refusal
        For what cannot run, or a ``__shared__`` that is not understood.
    """
    view = source if view is None else view
    masked = lexical.mask(view)
    code = lexical.without_directives(masked)
    refuse_unsupported(code)
    edits = asm_edits(view, code)
    edits += _Pass(view, code, kernels).edits() if _SHARED.search(code) else []
    return Rewritten(source, edits + cast_edits(view, code, outside=edits))


def refuse_unsupported(code: bytes) -> None:
    """Raise `Refusal` at the first construct of `REFUSALS` in a masked text."""
    found = [
        (match.start(), name.format(match[0].decode()), advice)
        for pattern, name, advice in _REFUSALS
        for match in pattern.finditer(code)
    ]
    if found:
        position, name, advice = min(found)
        raise Refusal(position, f"{name} cannot run on the CPU target: {advice}")


class _SharedVariable(NamedTuple):
    """A variable of one declaration: its name, the numbered type and tag, whether it is dynamic."""

    name: bytes
    number: int
    dynamic: bool

    def tag(self, kernel: bytes, alignments: bytes) -> bytes:
        """Return the declaration of the type that stands for the variable and knows the kernel it is in."""
        head = b" ".join(filter(None, [b"struct", alignments, b"gridstride_tag_%d" % self.number]))
        return head + b' { static const char* function() { return "%d %s"; } };' % (self.number, kernel)

    def reference(self) -> bytes:
        """Return the declaration of the reference that takes the variable's place."""
        n = self.number
        place = (
            b"gridstride_dynamic_shared<gridstride_type_%d>()" % n
            if self.dynamic
            else b"gridstride_shared<gridstride_tag_%d, gridstride_type_%d>()" % (n, n)
        )
        return b"gridstride_type_%d& %s = %s;" % (n, self.name, place)


class _Pass:
    """One run over one text."""

    def __init__(self, source: bytes, code: bytes, kernels: Collection[str]) -> None:
        self.source = source
        self.code = code
        self.kernels = kernels
        self.bodies = [(body.start_byte, body.end_byte) for body in bodies_of(source)]
        self.functions = {
            function.body: function for function in functions_of(source) if function.is_definition
        }
        self.macros = lexical.macros(source, lexical.mask(source))
        self.count = 0

    def edits(self) -> Iterator[Edit]:
        outside: list[tuple[int, _SharedVariable]] = []
        reached = 0
        for match in _SHARED.finditer(self.code):
            if match.start() < reached:
                continue
            start, reached = self._statement(match.start())
            typedefs, variables, alignments = self._declaration(start, reached)
            body = next((body for body in self.bodies if body[0] < start < body[1]), None)
            name = self.functions[body].name if body in self.functions else ""
            kernel = name.encode() if name in self.kernels else b""
            parts = [typedefs, *(item.tag(kernel, alignments) for item in variables if not item.dynamic)]
            if body is None:
                outside += [(start, variable) for variable in variables]
            else:
                parts += [variable.reference() for variable in variables]
            yield Edit(start, reached, b" ".join(parts))
        yield from self._references_in_bodies(outside)

    def _statement(self, position: int) -> tuple[int, int]:
        """Return where the declaration around a ``__shared__`` starts and ends."""
        attributes = dict(lexical.attribute_spans(self.code[:position]))
        plain = bytearray(self.code[:position])
        for first, last in attributes.items():
            plain[first:last] = b" " * (last - first)
        boundaries = [match.end() for match in _BOUNDARY.finditer(plain)]
        start = boundaries[-1] if boundaries else 0
        start += len(self.code[start:position]) - len(self.code[start:position].lstrip())
        end = position
        while end < len(self.code) and self.code[end : end + 1] != b";":
            end = (
                lexical.closing(self.code, end) if self.code[end : end + 1] in (b"(", b"[", b"{") else end + 1
            )
        return start, end + 1

    def _declaration(self, start: int, end: int) -> tuple[bytes, list[_SharedVariable], bytes]:
        """Return the typedefs that a declaration becomes, its variables and its alignment specifiers."""
        code = self.code[start:end]
        plain = bytearray(lexical.without_comments(self.source[start:end]))
        alignments = []
        for first, last in lexical.attribute_spans(code):
            alignments += [bytes(plain[first:last])] if b"align" in plain[first:last] else []
            plain[first:last] = lexical.blank(bytes(plain[first:last]))
        # What makes it a declaration for the parser, whatever follows, becomes the typedef.
        text = b"extern " + _STORAGE.sub(lambda match: lexical.blank(match[0]), bytes(plain))
        declaration = _only_declaration(parse(text))
        if declaration is None:
            raise Refusal(start, _NOT_UNDERSTOOD)
        dynamic = re.search(rb"\bextern\b", code) is not None
        edits, variables = [Edit(0, len(b"extern"), b"typedef")], []
        for declarator in declaration.children_by_field_name("declarator"):
            name = _variable_name(declarator, start)
            self.count += 1
            variables.append(_SharedVariable(name.text or b"", self.count, dynamic))
            edits.append(Edit(name.start_byte, name.end_byte, b"gridstride_type_%d" % self.count))
        return Rewritten(text, edits).text, variables, b" ".join(alignments)

    def _references_in_bodies(self, outside: list[tuple[int, _SharedVariable]]) -> Iterator[Edit]:
        """Give every function that names a variable of namespace scope a reference to it.

        The body becomes a block inside, so that its own declarations may still hide the name.
        """
        for first, last in self.bodies if outside else ():
            function = self.functions.get((first, last))
            parameters = {parameter.name.encode() for parameter in function.parameters} if function else set()
            words = self._words(first, last) - parameters
            around = namespaces_at(self.source, first)
            used = [
                variable
                for position, variable in outside
                if variable.name in words
                and position < first
                and around[: len(scope := namespaces_at(self.source, position))] == scope
            ]
            if used:
                references = b" ".join(variable.reference() for variable in used)
                yield Edit(first + 1, first + 1, b" " + references + b" {")
                yield Edit(last - 1, last - 1, b"}")

    def _words(self, start: int, end: int) -> set[bytes]:
        """Return the identifiers of a part of the text, and those its macros stand for."""
        words: set[bytes] = set()
        new = set(_IDENTIFIER.findall(self.code, start, end))
        while new:
            words |= new
            new = {name for word in new for name in _IDENTIFIER.findall(self.macros.get(word, b""))} - words
        return words


def _only_declaration(root: Node) -> Node | None:
    """Return the declaration that a text consists of, if it is one with a variable."""
    node = root.named_children[0] if root.named_child_count == 1 and not root.has_error else None
    declares = (
        node is not None and node.type == "declaration" and node.child_by_field_name("declarator") is not None
    )
    return node if declares else None


def _variable_name(declarator: Node, start: int) -> Node:
    if declarator.type == "init_declarator":
        raise Refusal(
            start, "a __shared__ variable cannot be initialized by its declaration; assign it in one thread"
        )
    name = declared_name(declarator)
    if (
        name is None
        or name.type != "identifier"
        or declarator.type in {"function_declarator", "reference_declarator"}
    ):
        raise Refusal(start, _NOT_UNDERSTOOD)
    return name
