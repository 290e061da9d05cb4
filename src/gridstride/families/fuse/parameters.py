"""What a fused kernel is passed: arrays and numbers one by one, or many numbers in one struct."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gridstride import _dtypes
from gridstride._arguments.parameters import value_ctype
from gridstride._arguments.promotion import DType
from gridstride.families.fuse.literals import definition
from gridstride.families.fuse.tape import Numbers, Tape, declarations

#: Compilers take much longer for each further one.
_MOST_ARRAYS = 128
#: Where a kernel would have more parameters, its numbers are passed in a struct: a call with many takes long.
_MOST_ALONE = 20
#: Where it would have more, the numbers that are the same in all calls are written into its text.
_MOST_PARAMETERS = 128
#: Of a struct, which must fit into the parameters of a kernel beside the arrays.
_MOST_BYTES = 16384


class Parameters:
    """Declare what a kernel is passed that makes some variables of a tape, and pass it.

    Parameters
    ----------
    tape : Tape
    used : set of str
        Variables and parameters.

    Attributes
    ----------
    struct : str
        The definition of a type that the declarations need; "" where they need none.
    definitions : list of str
        Statements that define numbers which are no parameters.
    names : list of str
    ctypes : list of str
        In which a function takes the parameters.
    """

    def __init__(self, tape: Tape, used: set[str]) -> None:
        self.struct, self.definitions = "", list[str]()
        self._arrays = {name: dtype for name, dtype in tape.arrays.items() if name in used}
        self._numbers = {name: each.dtype for name, each in tape.scalars.items() if name in used}
        self._packed: dict[DType, list[str]] = {}
        if len(self._arrays) > _MOST_ARRAYS:
            raise TypeError(
                f"fused function `{tape.name}`: {len(self._arrays)} arrays in one kernel, which takes {_MOST_ARRAYS}: "
                f"make a fused function of each part that has fewer"
            )
        if self._count() > _MOST_PARAMETERS:
            self._define_constants(tape)
        alone = self._arrays | self._numbers
        if self._count() > _MOST_ALONE:
            alone = self._arrays
            self._pack(tape.name)
        self._declared = declarations(alone.items())
        self.names = [*alone, *(["numbers"] if self._packed else [])]
        self.ctypes = [value_ctype(dtype) for dtype in alone.values()]
        self.ctypes += ["const gridstride_numbers&"] if self._packed else []

    @property
    def declarations(self) -> str:
        """The declarations, as kernels take them."""
        return ", ".join(
            each for each in (self._declared, "gridstride_numbers numbers" if self._packed else "") if each
        )

    def passed(self, arrays: Mapping[str, Any], numbers: Numbers) -> list[Any]:
        """Return the arguments of a call."""
        values = [arrays[name] for name in self._arrays]
        if not self._packed:
            return values + [numbers.scalars[name] for name in self._numbers]
        rows = [[numbers.scalars[name] for name in names] for names in self._packed.values()]
        return [*values, np.array(tuple(rows), self._struct_dtype)[()]]

    def _count(self) -> int:
        return len(self._arrays) + len(self._numbers)

    def _define_constants(self, tape: Tape) -> None:
        """Define the numbers that are the same in all calls."""
        constants = {name: tape.scalars[name].constant for name in self._numbers}
        for name, value in constants.items():
            if value is not None:
                self.definitions.append(definition(name, value, self._numbers.pop(name)))

    def _pack(self, function: str) -> None:
        """Put the numbers into a struct that has an array for each dtype, wide ones first as they need no gaps."""
        for name, dtype in sorted(self._numbers.items(), key=lambda each: -each[1].itemsize):
            self._packed.setdefault(dtype, []).append(name)
        fields = [
            (f"of_{_dtypes.name_of_dtype(dtype)}", dtype, names) for dtype, names in self._packed.items()
        ]
        self._struct_dtype = np.dtype(
            [(field, dtype, (len(names),)) for field, dtype, names in fields], align=True
        )
        size = self._struct_dtype.itemsize
        if size > _MOST_BYTES:
            raise TypeError(
                f"fused function `{function}`: {len(self._numbers)} numbers of {size} bytes in one kernel, which takes "
                f"{_MOST_BYTES} bytes of them: make a fused function of each part that has fewer"
            )
        members = "".join(f"{value_ctype(dtype)} {field}[{len(names)}]; " for field, dtype, names in fields)
        self.struct = f"struct gridstride_numbers {{ {members}}};"
        for field, dtype, names in fields:
            self.definitions += [
                f"const {value_ctype(dtype)} {name} = numbers.{field}[{place}];"
                for place, name in enumerate(names)
            ]
