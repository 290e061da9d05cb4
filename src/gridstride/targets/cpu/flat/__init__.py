"""The flat tier: kernels whose threads never wait become loops that the compiler makes vectors of.

flatten(text, kernels)      the text with the flat forms behind their kernels, and what kept the others
  survey      what the text declares
  expansion   macros
  index_functions   functions that return a thread's index
  admission   is every construct known?
  forms       the form of one kernel
    locals, constancy, linear   what is known of its integers
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from gridstride._syntax import base_name, normalize_name
from gridstride.targets.cpu.edits import Edit, Rewritten
from gridstride.targets.cpu.flat.admission import Admission, is_constant
from gridstride.targets.cpu.flat.expansion import expand
from gridstride.targets.cpu.flat.forms import FlatForm
from gridstride.targets.cpu.flat.index_functions import inline_index_functions
from gridstride.targets.cpu.flat.obstacles import Obstacle
from gridstride.targets.cpu.flat.survey import survey

if TYPE_CHECKING:
    from tree_sitter import Node

_INTEGER = re.compile(r"\s*\(*\s*\d\w*\s*\)*\s*")


class Flattened(NamedTuple):
    """A text with flat forms.

    Attributes
    ----------
    text : Rewritten
    names : dict of kernel name to name of its flat form
    obstacles : dict of kernel name to Obstacle
        Of the kernels that have none.
    """

    text: Rewritten
    names: dict[str, str]
    obstacles: dict[str, Obstacle]


def flatten(source: bytes, kernels: Sequence[str], macros: Sequence[tuple[str, str]] = ()) -> Flattened:
    """Give kernels of a text their flat forms.

    Parameters
    ----------
    source : bytes
        The text, without ``__shared__`` declarations.
    kernels : sequence of str
        Names and name expressions, as they were asked for.
    macros : sequence of (name, body)
        Those that are defined before the text.
    """
    try:
        return _flatten(source, kernels, macros)
    except RecursionError:
        nested = Obstacle(None, "is nested too deeply")
        return Flattened(Rewritten(source, []), {}, dict.fromkeys(kernels, nested))


def _flatten(source: bytes, kernels: Sequence[str], macros: Sequence[tuple[str, str]]) -> Flattened:
    expanded = inline_index_functions(expand(source))
    content = survey(expanded, macros)
    ends = content.ends if expanded is source else survey(source, macros).ends
    admission = Admission(content.text)
    constants = frozenset(
        name
        for name, bodies in content.text.macros.items()
        if all(is_constant(body, content.text.macros) and _INTEGER.fullmatch(body) for body in bodies)
    )
    edits: dict[int, Edit] = {}
    names: dict[str, str] = {}
    obstacles: dict[str, Obstacle] = {}
    for kernel in kernels:
        definition = _definition_of(kernel, content.kernels)
        if definition is None:
            continue  # the compiler will say what is missing
        end = ends.get(_key_of(kernel, content.kernels))
        try:
            if end is None:
                raise Obstacle(definition, "begins or ends in a macro")
            if definition.id not in edits:
                admission.check(definition)
                form = FlatForm(expanded, definition, content.text, constants)
                edits[definition.id] = Edit(end, end, f" {form.text(_simple_name(kernel))}".encode())
            names[kernel] = _flat_name(kernel)
        except Obstacle as obstacle:
            obstacles[kernel] = Obstacle(
                None, obstacle.reason, _same_line(expanded, source, obstacle.position)
            )
    return Flattened(Rewritten(source, list(edits.values())), names, obstacles)


def _same_line(text: bytes, source: bytes, position: int) -> int:
    """Return a position in the source on the line of one in a text with the same lines."""
    lines = source.split(b"\n")[: text.count(b"\n", 0, position)]
    return sum(len(line) + 1 for line in lines)


def _definition_of(kernel: str, kernels: dict[str, list[Node]]) -> Node | None:
    """Return the only definition of a kernel."""
    key = _key_of(kernel, kernels)
    return kernels[key][0] if key and len(kernels[key]) == 1 else None


def _key_of(kernel: str, kernels: dict[str, list[Node]]) -> str:
    """Return the qualified name of a kernel, "" unless there is exactly one."""
    wanted = normalize_name(base_name(kernel))
    found = [name for name in kernels if f"::{name}".endswith(f"::{wanted}")]
    return found[0] if len(found) == 1 else ""


def _simple_name(kernel: str) -> str:
    return base_name(kernel).rpartition("::")[2]


def _flat_name(kernel: str) -> str:
    """Return the name expression of the flat form: ``a::f<int>`` becomes ``a::gridstride_flat_f<int>``."""
    expression = kernel.strip().removeprefix("&").strip()
    head, bracket, arguments = expression.partition("<")
    scope, colons, name = head.rpartition("::")
    return f"{scope}{colons}gridstride_flat_{name.strip()}{bracket}{arguments}"
