"""The C++ types of a call: placeholders as typedefs, structured dtypes as structures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from gridstride import _dtypes
from gridstride._arguments.parameters import ParameterInfo, is_field_name, value_ctype
from gridstride._syntax.words import words

DType = np.dtype[Any]

_SMALL = ("float16", "bfloat16")
#: What types of a preamble may be aligned to that say so themselves.
_MOST_ALIGNED = 16


class Role(NamedTuple):
    """Say how one parameter enters the text of a kernel.

    Attributes
    ----------
    parameter : ParameterInfo
    kind : str
        "element" of an array, "scalar" by value, or "raw" array.
    stored, value : dtype
        Of the argument, and in which the body sees it.
    ndim : int
        Of a raw array.
    is_contiguous : bool
        Whether a raw array is C-contiguous.
    spelling : str
        Of its type, where that is not its parameter's.
    """

    parameter: ParameterInfo
    kind: str
    stored: DType
    value: DType
    ndim: int = 0
    is_contiguous: bool = True
    spelling: str = ""

    @property
    def ctype(self) -> str:
        """The type in which the body sees it."""
        return self.spelling or self.parameter.ctype

    @property
    def input_ctype(self) -> str:
        """The type of the body's name for an element that it reads; structures are not copied."""
        return f"const {self.ctype}{'&' if self.is_structure else ''}"

    @property
    def is_structure(self) -> bool:
        """Whether its type is a structure."""
        return self.value.names is not None and not _dtypes.is_bfloat16(self.value)

    @property
    def stored_ctype(self) -> str:
        """The type in which its memory holds it."""
        return self.ctype if self.stored == self.value else value_ctype(self.stored)

    @property
    def is_declared(self) -> bool:
        """Whether a preamble declares its type."""
        return self.parameter.dtype is None and not self.parameter.is_placeholder

    @property
    def alignment(self) -> int:
        """At multiples of how many bytes its elements must lie for the text; at most, for a type of a preamble."""
        if not self.is_structure or not self.is_declared:
            return alignment_of(self.stored)
        size = self.stored.itemsize
        return min(size & -size, _MOST_ALIGNED)


def type_lines(types: Iterable[tuple[str, DType]]) -> str:
    """Return the typedefs of placeholders."""
    return "\n".join(_type_line(letter, dtype) for letter, dtype in types)


def layout_lines(roles: Sequence[Role]) -> str:
    """Return assertions that types which a preamble declares are those of their arguments' elements."""
    declared = dict.fromkeys((role.ctype, role.value) for role in roles if role.is_declared)
    return "\n".join(_layout_lines(ctype, dtype) for ctype, dtype in declared)


def _layout_lines(ctype: str, dtype: DType) -> str:
    if not dtype.names or _dtypes.is_bfloat16(dtype):
        spelled = value_ctype(dtype)
        checks = {
            f"gridstride::stands_for<{ctype}, {spelled}>::value": f"{ctype} is another type than the argument's "
            f"dtype, {_dtypes.name_of_dtype(dtype)}"
        }
    else:
        checks = {
            f"sizeof({ctype}) == {dtype.itemsize}": f"{ctype} has another size than the argument's dtype, "
            f"{dtype.itemsize} bytes"
        }
        for name, member, offset in _members_of(dtype):
            checks[f"offsetof({ctype}, {name}) == {offset}"] = (
                f"member {name} of {ctype} stands elsewhere than in the argument's dtype, at byte {offset}"
            )
            base = member if member.subdtype is None else member.subdtype[0]
            is_number = not base.names or _dtypes.is_bfloat16(base)
            spelled = value_ctype(base) if is_number else "void"
            checks[
                f"gridstride::is_member<decltype({ctype}::{name}), {spelled}, {member.itemsize}>::value"
            ] = f"member {name} of {ctype} is of another type than in the argument's dtype, {member}"
    lines = [f'static_assert({check}, "{message}");' for check, message in checks.items()]
    return "\n".join((f'#line 1 "layout of {ctype}"', *lines))


def needed_headers(text: str, dtypes: Iterable[DType]) -> tuple[str, ...]:
    """Return the headers for the types of a kernel: those it uses, no others."""
    names = {_dtypes.name_of_dtype(each) for dtype in dtypes for each in _dtypes.scalars_of(dtype)}
    used, headers = words(text), []
    if names.union(used).intersection(_SMALL):
        headers.append("gridstride/small_floats.h")
    if any(name.startswith("complex") for name in names) or "complex" in used:
        headers.append("cupy/complex.cuh")
    if "packed_member" in used:
        headers.append("gridstride/packed_members.h")
    return tuple(headers)


def alignment_of(dtype: DType) -> int:
    """Return the alignment of the C++ type of a dtype."""
    if dtype.subdtype is not None:
        return alignment_of(dtype.subdtype[0])
    if dtype.kind == "c":
        return dtype.itemsize
    if _dtypes.is_bfloat16(dtype):
        return 2
    if not dtype.names:
        return dtype.alignment
    members = [(alignment_of(each), offset, each) for _, each, offset in _members_of(dtype)]
    wanted = [
        alignment
        for alignment, offset, each in members
        if dtype.alignment > 1 or (offset % alignment == 0 and _has_classes(each))
    ]
    return max((each for each in wanted if dtype.itemsize % each == 0), default=1)


def _has_classes(dtype: DType) -> bool:
    """Return whether the C++ type of a dtype is, or has members of, a class that keeps its alignment."""
    return any(
        each.kind == "c" or _dtypes.name_of_dtype(each) in _SMALL for each in _dtypes.scalars_of(dtype)
    )


def _type_line(letter: str, dtype: DType) -> str:
    if dtype.names and not _dtypes.is_bfloat16(dtype):
        size = f'static_assert(sizeof({letter}) == {dtype.itemsize}, "{letter} has another size than its dtype");'
        return f"{_structure(letter, dtype, alignment_of(dtype))} {size}"
    return f"typedef {value_ctype(dtype)} {letter};"


def _structure(name: str, dtype: DType, alignment: int) -> str:
    """Return the declaration of a structure that is laid out as a dtype is; gaps are members of their own.

    Fields whose names are no names in C++ are gaps.
    """
    members, at = [], 0
    for field_name, field_dtype, offset in sorted(_members_of(dtype), key=itemgetter(2)):
        if offset > at:
            members.append(f"unsigned char gridstride_gap_{at}[{offset - at}];")
        members.append(_member(field_name, field_dtype, min(alignment, offset & -offset or alignment)))
        at = offset + field_dtype.itemsize
    if dtype.itemsize > at:
        members.append(f"unsigned char gridstride_gap_{at}[{dtype.itemsize - at}];")
    return f"struct __attribute__((packed, aligned({alignment}))) {name} {{ {' '.join(members)} }};"


def _members_of(dtype: DType) -> Iterator[tuple[str, DType, int]]:
    """Yield name, dtype and offset of each field that C++ can name; none for a dtype that is no structure."""
    if dtype.fields is None or _dtypes.is_bfloat16(dtype):
        return
    for name in dtype.names or ():
        if is_field_name(name):
            yield (name, *dtype.fields[name][:2])


def _member(name: str, dtype: DType, alignment: int) -> str:
    """Return the declaration of a member at multiples of so many bytes."""
    lengths = ""
    if dtype.subdtype is not None:
        dtype, shape = dtype.subdtype
        lengths = "".join(f"[{length}]" for length in shape)
    if dtype.names and not _dtypes.is_bfloat16(dtype):
        declaration = _structure(f"gridstride_{name}", dtype, min(alignment, alignment_of(dtype)))
        return f"{declaration.removesuffix(';')} {name}{lengths};"
    ctype = value_ctype(dtype)
    if _has_classes(dtype) and alignment_of(dtype) > alignment:
        ctype = f"gridstride::packed_member<{ctype}>"
    return f"{ctype} {name}{lengths};"


def kind_of(dtype: DType) -> str:
    """Return NumPy's letter for the kind of numbers; "f" for bfloat16 too."""
    return "f" if _dtypes.is_bfloat16(dtype) else dtype.kind


def folded_ctype(dtype: DType) -> str:
    """Return the type in which values of a dtype are folded: float for those of two bytes."""
    name = _dtypes.name_of_dtype(dtype)
    return "float" if name in ("float16", "bfloat16") else _dtypes.ctype_of_dtype(dtype)
