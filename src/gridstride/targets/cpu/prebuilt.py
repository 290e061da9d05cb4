"""The runtime as the package's build compiled it, where that still belongs to the sources beside it.

It spares the first kernel of a user the time to build the runtime. ``setup.py`` runs this file for
the digest that it compiles in, so nothing but the standard library is imported.
"""

from __future__ import annotations

import hashlib
import os

FOLDER = os.path.dirname(os.path.abspath(__file__))
_SOURCES = ("runtime", os.path.join("include", "gridstride_cpu"), os.path.join("..", "..", "_native"))
_SUFFIXES = {"runtime": (".h", ".cpp")}


def prebuilt_runtime() -> bytes | None:
    """Return the shared object that was built with the package, or None: there is none of these sources."""
    for name in os.listdir(FOLDER):
        if name.startswith("_prebuilt") and name.endswith(".so"):
            with open(os.path.join(FOLDER, name), "rb") as file:
                code = file.read()
            if digest_of_sources().encode() in code:
                return code
    return None


def digest_of_sources() -> str:
    """Return the digest of all files that the runtime is compiled from."""
    digest = hashlib.sha256()
    for folder in _SOURCES:
        place = os.path.join(FOLDER, folder)
        for name in sorted(os.listdir(place)):
            if name.endswith(_SUFFIXES.get(folder, (".h",))):
                with open(os.path.join(place, name), "rb") as file:
                    digest.update(name.encode() + b"\0" + file.read() + b"\0")
    return digest.hexdigest()
