"""The cache key of a program: everything that shapes its object code, and nothing else."""

from __future__ import annotations

import marshal
from typing import Any

from gridstride.targets.base import Program, Target

#: Raised when the meaning or the format of an entry changes.
SCHEMA = 2


def cache_key(target: Target, arch: str, program: Program) -> str:
    """Return the key (hexadecimal SHA-256) of a program's object code on a target.

    Headers that the compiler reads from files are not part of the key: an entry lists them with
    their digests, which are compared when it is read.
    """
    import hashlib

    payload: Any = (
        SCHEMA,
        target.name,
        arch,
        target.fingerprint(program, arch),
        program.text,
        program.path,
        tuple(program.options),
        program.kernels,
        program.globals,
        program.constants,
        program.headers,
        program.includes,
        program.specialization,
        program.tier,
        program.linked,
        program.is_signed,
    )
    # Format 0 tells values alone; later ones also which objects are the same. Only strings, numbers,
    # bytes, tuples and None can be written: anything else is a ValueError.
    return hashlib.sha256(marshal.dumps(payload, 0)).hexdigest()
