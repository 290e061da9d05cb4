"""Parameters of elementwise and reduction kernels: what their declarations say."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np

from gridstride import _dtypes
from gridstride._syntax.words import KEYWORDS, words

#: Names that the text around an operation has.
_ELEMENTWISE_RESERVED = frozenset({"i", "n", "_ind"})
_BUILT_IN = frozenset({"threadIdx", "blockIdx", "blockDim", "gridDim", "warpSize", "NAN", "INFINITY", "NULL"})
#: Also a compiler's own.
_KEYWORDS = KEYWORDS | {"typeof"}


#: A type of a preamble, perhaps of a namespace or with arguments.
_TYPE = re.compile(r"[A-Za-z_]\w*(::\w+)*(\s*<[\w:<>, ]*>)?(::\w+)*")
#: CUDA's own.
_VECTOR = re.compile(r"(u?)(char|short|int|long|longlong|float|double)([1-4])")


class ParameterInfo:
    """Say what one declaration of a parameter means.

    Parameters
    ----------
    param : str
        A type and a name, such as ``"T x"``, ``"raw float32 y"`` or ``"const int64 k"``. The type is a
        placeholder (an upper-case letter, digits may follow), a dtype's name, a C++ type, or a type that a
        preamble declares.
    is_const : bool
        Whether the kernel only reads it.

    Attributes
    ----------
    name : str
    ctype : str
        The type's C++ spelling; a placeholder's letter.
    dtype : numpy.dtype or None
        None for placeholders and for types of a preamble.
    raw : bool
        Whether the kernel indexes the whole array.
    is_const : bool

    Raises
    ------
    ValueError
        Where the declaration is not understood.
    """

    __slots__ = ("ctype", "dtype", "is_const", "name", "raw")

    name: str
    ctype: str
    dtype: np.dtype[Any] | None
    raw: bool
    is_const: bool

    def __init__(self, param: str, is_const: bool = False) -> None:
        if not isinstance(param, str):
            raise TypeError(f"a declaration is text such as 'T x', got {type(param).__name__}")
        words = param.split()
        last = len(words) - 1
        text = " ".join(
            word
            for k, word in enumerate(words)
            if k == last or (word != "const" and (word != "raw" or k == last - 1))
        )
        end = 1 + max(text.rfind(mark) for mark in " >*&")
        name, spelled = text[end:], text[:end].strip()
        if not end or not name.isidentifier() or not name[:1].isascii():
            raise ValueError(f"{param.strip()!r} is no parameter: write a type and a name, such as 'T x'")
        if not is_identifier(name):
            raise ValueError(f"parameter {param.strip()!r}: {name!r} is a word of C++ and cannot name it")
        ctype, dtype = _type_of(spelled, param.strip())
        self._become(name, ctype, dtype, "raw" in words[:-2], bool(is_const) or "const" in words[:-1])

    def _become(self, name: str, ctype: str, dtype: np.dtype[Any] | None, raw: bool, is_const: bool) -> None:
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "ctype", ctype)
        object.__setattr__(self, "dtype", dtype)
        object.__setattr__(self, "raw", raw)
        object.__setattr__(self, "is_const", is_const)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{self!r} says what a text declares and cannot be changed: make another one")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{self!r} says what a text declares and cannot be changed: make another one")

    @property
    def is_placeholder(self) -> bool:
        """Whether the arguments decide its type."""
        return is_placeholder(self.ctype)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ParameterInfo) and self._fields() == other._fields()

    def __hash__(self) -> int:
        return hash(self._fields())

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (type(self), self._fields())

    def __repr__(self) -> str:
        marks = ("raw " if self.raw else "") + ("const " if self.is_const else "")
        return f"<ParameterInfo {marks}{self.ctype} {self.name}>"

    def _fields(self) -> tuple[Any, ...]:
        return self.name, self.ctype, self.dtype, self.raw, self.is_const


def _restored(cls: type[ParameterInfo], fields: tuple[Any, ...]) -> ParameterInfo:
    info = cls.__new__(cls)
    info._become(*fields)
    return info


class Declaration(NamedTuple):
    """Hold the parameters of a kernel.

    Attributes
    ----------
    name : str
        Of the kernel.
    inputs, outputs : tuple of ParameterInfo
    """

    name: str
    inputs: tuple[ParameterInfo, ...]
    outputs: tuple[ParameterInfo, ...]

    @property
    def nin(self) -> int:
        """Number of inputs."""
        return len(self.inputs)

    @property
    def nout(self) -> int:
        """Number of outputs."""
        return len(self.outputs)

    @property
    def nargs(self) -> int:
        """Number of inputs and outputs."""
        return self.nin + self.nout

    @property
    def parameters(self) -> tuple[ParameterInfo, ...]:
        """Inputs, then outputs."""
        return self.inputs + self.outputs


def _get_param_info(s: str, is_const: bool = False) -> tuple[ParameterInfo, ...]:
    """Parse a list of parameter declarations.

    Parameters
    ----------
    s : str
        Declarations separated by commas; those between angle brackets belong to a type.
    is_const : bool
        Whether the kernel only reads them.

    Returns
    -------
    tuple of ParameterInfo

    Raises
    ------
    ValueError
        Where a declaration is not understood.
    """
    if not isinstance(s, str):
        raise TypeError(f"declarations are text such as 'T x, T y', got {type(s).__name__}")
    return tuple(ParameterInfo(part, is_const) for part in _parts(s))


def declare(
    name: str,
    in_params: str,
    out_params: str,
    types: str,
    reserved: frozenset[str] = _ELEMENTWISE_RESERVED,
    reserved_of_outputs: frozenset[str] = frozenset(),
) -> Declaration:
    """Return a kernel's parameters from its two lists.

    Parameters
    ----------
    name, in_params, out_params : str
    types : str
        The preambles, which may declare types.
    reserved, reserved_of_outputs : frozenset of str
        Names that no parameter can have, and those that no output can have besides.

    Raises
    ------
    TypeError, ValueError
        For lists that are not understood: an unknown type, a name that is taken or twice there.
    """
    for label, text in (("in_params", in_params), ("out_params", out_params)):
        if not isinstance(text, str):
            raise TypeError(f"`{name}`: {label} must be a string of declarations, got {type(text).__name__}")
    try:
        declared = Declaration(name, _get_param_info(in_params, True), _get_param_info(out_params))
    except ValueError as error:
        raise ValueError(f"`{name}`: {error}") from None
    seen: set[str] = set()
    placeholders = {parameter.ctype for parameter in declared.parameters if parameter.is_placeholder}
    for parameter in declared.parameters:
        taken = reserved | (reserved_of_outputs if parameter in declared.outputs else set())
        if parameter.name in taken | _BUILT_IN | placeholders:
            raise ValueError(
                f"`{name}`: parameter {parameter.name!r} has a name that the kernel's text has already: write another"
            )
        if _is_compilers_own(parameter.name):
            raise ValueError(
                f"`{name}`: parameter {parameter.name!r} has a name as compilers' own words have: write another"
            )
        if parameter.name in seen:
            raise ValueError(f"`{name}`: two parameters have the name {parameter.name!r}")
        seen.add(parameter.name)
        if parameter.dtype is None and not parameter.is_placeholder:
            _check_declared(name, parameter, types)
    return declared


def value_ctype(dtype: np.dtype[Any]) -> str:
    """Return the C++ type in which a kernel's body sees a scalar dtype."""
    name = _dtypes.name_of_dtype(dtype)
    return name if name in ("float16", "bfloat16") else _dtypes.ctype_of_dtype(dtype)


def vector_of(ctype: str) -> tuple[np.dtype[Any], int] | None:
    """Return the dtype and the number of the components of one of CUDA's vectors; None for any other type."""
    match = _VECTOR.fullmatch(ctype)
    if match is None:
        return None
    sign, name, count = match.groups()
    dtype = _dtypes.dtype_of_ctype(f"{'unsigned ' if sign else ''}{name.replace('longlong', 'long long')}")
    return None if dtype is None else (dtype, int(count))


def is_identifier(name: str) -> bool:
    """Return whether a name can be one in C++."""
    return name.isidentifier() and name[:1].isascii() and name not in _KEYWORDS


def is_field_name(name: str) -> bool:
    """Return whether a name can be that of a structure's member: no macro, and none of a compiler's own words."""
    return is_identifier(name) and name not in _BUILT_IN and not _is_compilers_own(name)


def _is_compilers_own(name: str) -> bool:
    """Return whether a name is as words of compilers are, such as ``__global__``."""
    return name[:2] == "__" == name[-2:]


def is_placeholder(ctype: str) -> bool:
    """Return whether arguments decide what a type is: an upper-case letter, which digits may follow."""
    return "A" <= ctype[:1] <= "Z" and (len(ctype) == 1 or (ctype.isascii() and ctype[1:].isdecimal()))


def _parts(text: str) -> list[str]:
    parts, depth, start = [], 0, 0
    for position, character in enumerate(text):
        depth += (character == "<") - (character == ">")
        if character == "," and depth == 0:
            parts.append(text[start:position])
            start = position + 1
    parts.append(text[start:])
    if not text.strip():
        return []
    return parts


def _type_of(spelled: str, declared: str) -> tuple[str, np.dtype[Any] | None]:
    """Return a declaration's type in C++, and its dtype where that is known; ValueError where it is none."""
    if is_placeholder(spelled):
        return spelled, None
    dtype = _dtype_of(spelled)
    if dtype is not None:
        return value_ctype(dtype), dtype
    if not _TYPE.fullmatch(spelled):
        hint = ": declare an array that is indexed as raw" if spelled.endswith(("*", "&")) else ""
        raise ValueError(f"parameter {declared!r}: {spelled!r} is no type{hint}")
    return spelled, None


def _dtype_of(spelled: str) -> np.dtype[Any] | None:
    if spelled in _dtypes.SCALAR_NAMES:
        return _dtypes.dtype_of_name(spelled)
    return _dtypes.dtype_of_ctype(spelled)


def _check_declared(name: str, parameter: ParameterInfo, types: str) -> None:
    base = parameter.ctype.partition("<")[0].rpartition("::")[2].strip()
    if base in words(types) or _VECTOR.fullmatch(base):
        return
    import difflib

    near = difflib.get_close_matches(parameter.ctype, _dtypes.SCALAR_NAMES, 1)
    if not near and "include" in words(types):  # by a header
        return
    hint = f"; did you mean {near[0]!r}?" if near else "."
    raise ValueError(
        f"`{name}`: parameter {parameter.name!r} has the unknown type {parameter.ctype!r}{hint} Known are dtypes "
        f"({', '.join(_dtypes.SCALAR_NAMES)}), C++ types, placeholders such as T, and types that a preamble declares"
    )
