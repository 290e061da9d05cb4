"""Which variables of a kernel keep their first value."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gridstride._syntax.parser import declared_name, text_of
from gridstride.targets.cpu.flat import vocabulary
from gridstride.targets.cpu.flat.admission import Text, declared_names, parameters_of, walk

if TYPE_CHECKING:
    from tree_sitter import Node

_GROUPS = frozenset(
    {"identifier", "parenthesized_expression", "conditional_expression", "comma_expression"}
    | {"argument_list", "initializer_list"}
)


def changed_names(function: Node, text: Text) -> frozenset[str]:
    """Return the names of variables that may get another value after their first.

    They are assigned, counted up, or something may refer to them: their address, a reference, an
    object or a function of the user's, a lambda.
    """
    if any(_takes_foreign_references(operator, text) for operator in _operators(text)):
        return frozenset(declared_names(function))
    changed: set[str] = set()
    for node in walk(function):
        changed.update(_changed_by(node, text))
    return frozenset(changed)


def stored_through(function: Node) -> frozenset[str]:
    """Return the pointers whose elements are assigned, which `changed_names` counts as changed.

    They are changed themselves if they appear in any other place that changes a variable.
    """
    pointers = _pointers(function)
    elements: set[str] = set()
    others: set[str] = set()
    for node in walk(function):
        if node.type not in ("assignment_expression", "update_expression"):
            continue
        target = node.child_by_field_name("left") or node.child_by_field_name("argument")
        names = set(_assigned(target))
        (elements if _is_element(target) else others).update(names)
    return frozenset((elements & pointers) - others)


def _is_element(target: Node | None) -> bool:
    while target is not None and target.type in ("field_expression", "parenthesized_expression"):
        inner = target.named_children[0] if target.named_children else None
        target = target.child_by_field_name("argument") or inner
    return target is not None and target.type == "subscript_expression"


def _pointers(function: Node) -> set[str]:
    """Return the names that are declared as pointers, and as nothing else."""
    declared = declared_names(function)
    found = {text_of(declared_name(node)) for node in walk(function) if node.type == "pointer_declarator"}
    return {name for name in found if declared.count(name) == 1}


def _changed_by(node: Node, text: Text) -> Iterator[str]:
    match node.type:
        case "assignment_expression":
            yield from _assigned(node.child_by_field_name("left"))
        case "update_expression":
            yield from _assigned(node.child_by_field_name("argument"))
        case "pointer_expression" if text_of(node).startswith("&"):
            yield from _assigned(node.child_by_field_name("argument"))
        case "declaration" if _may_refer(node):
            for declarator in node.children_by_field_name("declarator"):
                yield from _bare_names(declarator.child_by_field_name("value"))
        case "compound_literal_expression":
            yield from _bare_names(node.child_by_field_name("value"))
        case "lambda_expression":
            yield from _names(node)
        case "return_statement":
            yield from _bare_names(node.named_children[0] if node.named_children else None)
        case "call_expression":
            function = node.child_by_field_name("function")
            name = text_of(function).partition("<")[0]
            is_builtin = (
                name not in text.functions and name not in text.types and vocabulary.is_computation(name)
            )
            if not is_builtin and function is not None and function.type != "primitive_type":
                yield from _bare_names(node.child_by_field_name("arguments"))
        case "cast_expression" if "&" in text_of(node.child_by_field_name("type")):
            yield from _names(node.child_by_field_name("value"))
        case "template_argument_list" if "&" in text_of(node):
            call = node.parent.parent if node.parent is not None else None
            yield from _names(call)


def _may_refer(declaration: Node) -> bool:
    """Return whether what is declared may be, or hold, a reference to what it is made of."""
    written = declaration.child_by_field_name("type")
    if written is not None and written.type in ("primitive_type", "sized_type_specifier"):
        return any(node.type == "reference_declarator" for node in walk(declaration))
    is_auto = written is not None and written.type == "placeholder_type_specifier"
    return not is_auto or any(node.type == "reference_declarator" for node in walk(declaration))


def _assigned(node: Node | None) -> Iterator[str]:
    """Yield the variables in the target of an assignment; indices are only read."""
    if node is None:
        return
    if node.type == "identifier":
        yield text_of(node)
    for child in node.named_children:
        if child.type != "subscript_argument_list":
            yield from _assigned(child)


def _bare_names(node: Node | None) -> Iterator[str]:
    """Yield the variables that a value is, rather than is computed from."""
    if node is None or node.type not in _GROUPS:
        return
    if node.type == "identifier":
        yield text_of(node)
    for child in node.named_children:
        yield from _bare_names(child)


def _names(node: Node | None) -> Iterator[str]:
    return (text_of(item) for item in walk(node) if item.type == "identifier")


def _operators(text: Text) -> Iterator[Node]:
    for name, definitions in text.functions.items():
        if name.startswith("operator"):
            yield from definitions


def _takes_foreign_references(operator: Node, text: Text) -> bool:
    """Return whether an operator may change an operand that is no object of the user's."""
    return any(
        "&" in text_of(parameter)
        and "const" not in text_of(parameter)
        and not _is_class(text_of(parameter.child_by_field_name("type")), text)
        for parameter in parameters_of(operator)
    )


def _is_class(name: str, text: Text) -> bool:
    """Return whether a type is a struct of the text's or a vector of CUDA's; a template parameter may be anything."""
    return name in text.classes or vocabulary.is_vector(name)
