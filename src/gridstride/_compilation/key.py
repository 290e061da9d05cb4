"""The cache key of a program: everything that shapes its object code, and nothing else."""

from __future__ import annotations

from gridstride.targets.base import Program, Target

#: Raised when the meaning or the format of an entry changes.
SCHEMA = 1


def cache_key(target: Target, arch: str, program: Program) -> str:
    """Return the key (hexadecimal SHA-256) of a program's object code on a target.

    Headers that the compiler reads from files are not part of the key: an entry lists them with
    their digests, which are compared when it is read.
    """
    import hashlib
    import json

    payload = {
        "schema": SCHEMA,
        "target": target.name,
        "arch": arch,
        "fingerprint": target.fingerprint(program, arch),
        "text": program.text,
        "path": program.path,
        "options": program.options._asdict(),
        "kernels": program.kernels,
        "globals": program.globals,
        "constants": program.constants,
        "headers": program.headers,
        "includes": program.includes,
        "specialization": program.specialization,
    }
    # Only strings, numbers, tuples and None can be written; anything else is refused by json.
    return hashlib.sha256(json.dumps(payload, sort_keys=True).encode()).hexdigest()
