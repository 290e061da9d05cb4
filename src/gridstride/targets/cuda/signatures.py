"""From what the compiler spells in mangled names to the signature of a kernel."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from gridstride import _dtypes
from gridstride.targets.base import CType, Parameter, Signature
from gridstride.targets.cuda.elf import ParameterLayout
from gridstride.targets.cuda.itanium import (
    Array,
    Builtin,
    Function,
    Literal,
    Name,
    Node,
    Pack,
    Pointer,
    Qualified,
    Symbol,
    UnknownMangling,
    parse,
    spell,
)

_POINTER_SIZE = 8
_VECTOR = re.compile(r"(u?)(char|short|int|longlong|long|float|double)([1-4])(?:_(?:16|32)a)?")
_VECTOR_WORDS = {"longlong": "long long"}
_SPECIAL_VECTORS = {"__half2": "__half", "__nv_bfloat162": "__nv_bfloat16"}
_SPECIAL_SCALARS = {"__half", "__nv_bfloat16", "complex<float>", "complex<double>"}
_REAL_ARGUMENTS = ((Builtin("float"),), (Builtin("double"),))
_CHARACTERS = {
    "wchar_t": np.int32,
    "char8_t": np.uint8,
    "char16_t": np.uint16,
    "char32_t": np.uint32,
    "_Float16": np.float16,
}


class _Innermost(NamedTuple):
    """What stands behind all pointers of a parameter: size, alignment, and an enumeration's integer type."""

    size: int = 0
    alignment: int = 0
    value: Node | None = None


def read_signature(mangled: str, names: Sequence[str] = ()) -> Signature:
    """Return the signature that the lowered name of a ``gridstride_signature`` spells.

    Parameters
    ----------
    mangled : str
    names : sequence of str
        Names of the parameters; ignored unless there is one for each.

    Raises
    ------
    UnknownMangling
    """
    description = _last_argument(mangled)
    if not isinstance(description, Name) or description.text != "gridstride_arguments":
        raise UnknownMangling(f"{mangled!r} spells no parameters")
    types = [_argument_type(argument) for argument in _flat(description.arguments or ())]
    return _lay_out(types, names)


def read_constant(mangled: str) -> int:
    """Return the value that the lowered name of a ``gridstride_constant`` spells."""
    value = _last_argument(mangled)
    if not isinstance(value, Literal):
        raise UnknownMangling(f"{mangled!r} spells no constant")
    return int(value.value)


def entity(mangled: str) -> Symbol:
    """Return the function or variable whose address is the last template argument of a lowered name."""
    found = _last_argument(mangled)
    if not isinstance(found, Symbol):
        raise UnknownMangling(f"{mangled!r} holds no address")
    return found


def read_kernel_name(mangled: str, layouts: Sequence[ParameterLayout]) -> Signature:
    """Return what a kernel's own lowered name says, with the layouts its cubin gives.

    Types that the name leaves open (all of them for a C symbol) are structs without a name.
    """
    try:
        nodes: Sequence[Node | None] = parse(mangled).parameters or ()
    except UnknownMangling:
        nodes = ()
    if len(nodes) != len(layouts):
        nodes = [None] * len(layouts)
    return tuple(
        Parameter("", _sized_type(node, layout.size), layout.offset)
        for node, layout in zip(nodes, layouts, strict=True)
    )


def _last_argument(mangled: str) -> Node:
    arguments = parse(mangled).name.arguments
    if not arguments:
        raise UnknownMangling(f"{mangled!r} has no template arguments")
    return arguments[-1]


def _argument_type(argument: Node) -> CType:
    if (
        not isinstance(argument, Name)
        or argument.text != "gridstride_argument"
        or len(argument.arguments or ()) != 6
    ):
        raise UnknownMangling(f"{spell(argument)!r} describes no parameter")
    assert argument.arguments is not None
    node, size, alignment, value, innermost_size, innermost_alignment = argument.arguments
    innermost = _Innermost(
        _number(innermost_size), _number(innermost_alignment), _canonical(_unqualified(value))
    )
    ctype = _ctype(_canonical(node), innermost)._replace(const=False)
    return ctype._replace(size=_number(size), alignment=_number(alignment))


def _sized_type(node: Node | None, size: int) -> CType:
    if node is None:
        return CType("struct", "", size, 0)
    return _ctype(_canonical(node), _Innermost())._replace(const=False, size=size)


def _lay_out(types: Sequence[CType], names: Sequence[str]) -> Signature:
    if len(names) != len(types):
        names = [""] * len(types)
    parameters, end = [], 0
    for name, ctype in zip(names, types, strict=True):
        offset = -(-end // ctype.alignment) * ctype.alignment
        parameters.append(Parameter(name, ctype, offset))
        end = offset + ctype.size
    return tuple(parameters)


def _ctype(node: Node, innermost: _Innermost) -> CType:
    match node:
        case Qualified():
            ctype = _ctype(node.type, innermost)
            return ctype._replace(const=ctype.const or node.const)
        case Pointer():
            pointee = _ctype(_element(node.target), innermost)
            return CType("pointer", spell(node), _POINTER_SIZE, _POINTER_SIZE, pointee=pointee)
        case Function():
            return CType("function", spell(node), 0, 0)
        case Builtin(name):
            return _builtin(name, innermost)
        case Name():
            return _named(node, innermost)
    raise UnknownMangling(f"{spell(node)!r} is no type of a parameter")


def _builtin(name: str, innermost: _Innermost) -> CType:
    if name == "void":
        return CType("void", name, 0, 0)
    dtype = np.dtype(_CHARACTERS[name]) if name in _CHARACTERS else _dtypes.dtype_of_ctype(name)
    if dtype is None:
        return CType("struct", name, innermost.size, innermost.alignment)
    return CType("scalar", name, dtype.itemsize, dtype.alignment, dtype)


def _named(node: Name, innermost: _Innermost) -> CType:
    name = spell(node)
    size, alignment = innermost.size, innermost.alignment
    if isinstance(innermost.value, Builtin):
        return _builtin(innermost.value.name, innermost)._replace(name=name)
    if name in _SPECIAL_SCALARS:
        return CType("scalar", name, size, alignment, _dtypes.dtype_of_ctype(name))
    if name in _SPECIAL_VECTORS:
        return CType("vector", name, size, alignment, _dtypes.dtype_of_ctype(_SPECIAL_VECTORS[name]), 2)
    if vector := _VECTOR.fullmatch(name):
        component = ("unsigned " if vector[1] else "") + _VECTOR_WORDS.get(vector[2], vector[2])
        component = "signed char" if component == "char" else component
        return CType("vector", name, size, alignment, _dtypes.dtype_of_ctype(component), int(vector[3]))
    return CType("struct", name, size, alignment)


def _canonical(node: Node) -> Node:
    """Return a type in which complex numbers of every namespace are ``complex<T>``."""
    match node:
        case Qualified():
            return node._replace(type=_canonical(node.type))
        case Pointer():
            return node._replace(target=_canonical(node.target))
        case Array():
            return node._replace(element=_canonical(node.element))
        case Name(text="complex") if tuple(_flat(node.arguments or ())) in _REAL_ARGUMENTS:
            return Name("complex", node.arguments)
    return node


def _element(node: Node) -> Node:
    while isinstance(node, Array):
        node = node.element
    return node


def _unqualified(node: Node) -> Node:
    return _unqualified(node.type) if isinstance(node, Qualified) else node


def _flat(nodes: Sequence[Node]) -> Iterator[Node]:
    for node in nodes:
        if isinstance(node, Pack):
            yield from _flat(node.items)
        else:
            yield node


def _number(node: Node) -> int:
    if not isinstance(node, Literal):
        raise UnknownMangling(f"{spell(node)!r} is no number")
    return int(node.value)
