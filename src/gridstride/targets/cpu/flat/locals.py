"""The integers of a kernel that never change: parameters, and local variables with one value."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gridstride._syntax.parser import declared_name, text_of
from gridstride.targets.cpu.flat.admission import declared_names, parameters_of, walk
from gridstride.targets.cpu.flat.linear import Definition, integer_type

if TYPE_CHECKING:
    from collections.abc import Set

    from tree_sitter import Node


def leaves_of(kernel: Node, changed: Set[str], constants: Set[str]) -> dict[str, str]:
    """Return the names of integers that all threads have in common: parameters and constants."""
    names = set(constants)
    template = kernel.parent
    if template is not None and template.type == "template_declaration":
        names.update(
            name
            for node in walk(template.child_by_field_name("parameters"))
            if (name := _integer_parameter(node))
        )
    declared = declared_names(kernel)
    names = {name for name in names if name not in declared}
    names.update(
        name
        for node in parameters_of(kernel)
        if (name := _integer_parameter(node)) and declared.count(name) == 1 and name not in changed
    )
    return {name: name for name in names}


def definitions_of(kernel: Node, changed: Set[str]) -> dict[str, Definition]:
    """Return the integer variables that are declared once, with a value, and keep it."""
    declared = declared_names(kernel)
    found = {}
    for node in walk(kernel.child_by_field_name("body")):
        if node.type != "declaration":
            continue
        written = text_of(node.child_by_field_name("type"))
        ctype = "" if written == "auto" else integer_type(written)
        if not ctype and written != "auto":
            continue
        for item in node.children_by_field_name("declarator"):
            name, value = item.child_by_field_name("declarator"), item.child_by_field_name("value")
            if (
                (
                    item.type == "init_declarator"
                    and value is not None
                    and name is not None
                    and name.type == "identifier"
                )
                and declared.count(text_of(name)) == 1
                and text_of(name) not in changed
            ):
                found[text_of(name)] = Definition(ctype, value)
    return found


def _integer_parameter(node: Node) -> str:
    """Return the name of a parameter that is an integer, "" for others."""
    if node.type != "parameter_declaration" or not integer_type(text_of(node.child_by_field_name("type"))):
        return ""
    declarator = node.child_by_field_name("declarator")
    return (
        text_of(declared_name(declarator))
        if declarator is not None and declarator.type == "identifier"
        else ""
    )
