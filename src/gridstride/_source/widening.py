"""Numbers of one or two bytes that structures hold as int or float, which a GPU compares by fewer instructions.

They have types to which nothing but such a number can be assigned, so none that would have had to be rounded or cut
off: where a text does anything else with them than comparing and copying, it does not compile and is taken as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import numpy as np

from gridstride import _dtypes
from gridstride._arguments.parameters import value_ctype
from gridstride._source.types import DType, Role
from gridstride._syntax.words import words

#: Words by which a text may depend on how large a type is, or which one it is.
_ABOUT_TYPES = words(
    """
    alignas alignof asm bool char decltype memcpy operator reinterpret_cast short signed sizeof static_cast template
    type_in0_raw type_out0_raw typedef typeid union unsigned using __asm__
    """
)

#: Casts to pointers and references, and addresses: through them a text may read the bytes of a number.
_REACHES_BYTES = re.compile(r"[*&]\s*\)|(?:[(,=?:;{}+\-*/%!~]|\breturn\b)\s*&(?!&)")


def widened(declared: str, folded: str, post: str, types: Iterable[tuple[str, DType]]) -> tuple[str, ...]:
    """Return the placeholders of small numbers of which a text declares single members, and perhaps nothing else.

    What the compiler does not refuse is looked for here: casts, addresses, arrays, and what is said about types.

    Parameters
    ----------
    declared, folded, post : str
        The preambles; the expressions that map and reduce; the one that assigns results.
    types : iterable of (placeholder, dtype)
        Of inputs.
    """
    text = f"{declared}\n{folded}"
    if set("#[") & set(text) or not words(text).isdisjoint(_ABOUT_TYPES) or _REACHES_BYTES.search(text):
        return ()
    return tuple(
        letter
        for letter, dtype in types
        if dtype.itemsize <= 2
        and (dtype.kind in "iuf" or _dtypes.is_bfloat16(dtype))
        and letter in words(declared)
        and letter not in words(post)
        and not re.search(rf"\b{letter}\b(?!\s+[A-Za-z_])", text)
    )


def widened_role(role: Role, placeholders: Sequence[str], outputs: set[str]) -> Role:
    """Return the role of a parameter where placeholders are widened: what is not read is as it is stored."""
    if role.parameter.ctype not in placeholders:
        return role
    if role.kind == "element" and role.parameter.name not in outputs:
        return role._replace(value=np.dtype(np.int32 if role.value.kind in "iu" else np.float32))
    return role._replace(spelling=value_ctype(role.value))


def widened_line(placeholder: str, dtype: DType) -> str:
    """Return the declaration of a widened placeholder."""
    ctype = value_ctype(dtype)
    declared = f"typedef gridstride::as_float<{ctype}> {placeholder};"
    if dtype.kind in "iu":
        declared = f"enum {placeholder} : int {{}};"
    return f"{declared}  // {ctype}, which is only compared and copied"
