"""Headers of the CUDA C++ core libraries (``cuda/std/...``), of whichever version is installed.

They are compiled as host code. What a device compiler defines must be out of sight then, and in sight in the
user's text around them; so the compiler finds headers of ours under their names, which include them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from gridstride._syntax import lexical
from gridstride.targets import toolkit
from gridstride.targets.cpu import device_names
from gridstride.targets.cpu.edits import Refusal

#: The headers that are host code, or become it.
HEADERS = (
    "cuda/atomic", "cuda/bit", "cuda/cmath", "cuda/numeric", "cuda/type_traits", "cuda/utility",
    "cuda/version", "cuda/std/algorithm", "cuda/std/array", "cuda/std/atomic", "cuda/std/bit",
    "cuda/std/cassert", "cuda/std/cfloat", "cuda/std/climits", "cuda/std/cmath", "cuda/std/complex",
    "cuda/std/concepts", "cuda/std/cstddef", "cuda/std/cstdint", "cuda/std/cstdlib", "cuda/std/cstring",
    "cuda/std/expected", "cuda/std/functional", "cuda/std/initializer_list", "cuda/std/inplace_vector",
    "cuda/std/iterator", "cuda/std/limits", "cuda/std/linalg", "cuda/std/mdspan", "cuda/std/numeric",
    "cuda/std/optional", "cuda/std/ranges", "cuda/std/ratio", "cuda/std/source_location", "cuda/std/span",
    "cuda/std/string_view", "cuda/std/tuple", "cuda/std/type_traits", "cuda/std/utility",
    "cuda/std/variant", "cuda/std/version",
)  # fmt: skip
VERSION_HEADER = "cuda/std/__cccl/version.h"

_NAMES = re.compile(rb"^[ \t]*#[ \t]*include[ \t]*[<\"]((?:cuda|cub|nv)/[^>\"\n]+)[>\"]", re.MULTILINE)
_COMPILER_HEADER = "cuda/std/__cccl/compiler.h"
_FREESTANDING = "_CCCL_ENABLE_FREESTANDING"
_WRAPPER = """\
#include <gridstride_cpu/core_library_begin.h>
#include_next <{name}>
#include <gridstride_cpu/core_library_end.h>
"""


def is_named(text: str) -> bool:
    """Return whether a text includes one of them, or another header that is beside them."""
    return _NAMES.search(text.encode()) is not None


def folder() -> Path | None:
    """Return the folder with the installed headers, or None."""
    return next((place for place in toolkit.include_folders() if (place / VERSION_HEADER).is_file()), None)


def write_wrappers(place: Path) -> tuple[Path, ...]:
    """Write our headers into a folder; return the folders to search in, none where nothing is installed.

    The second one shows the compiler these libraries without CUB, which stands beside them.
    """
    installed = folder()
    if installed is None or not _works_without_a_library(installed):
        return ()
    for name in HEADERS:
        if (installed / name).is_file():
            path = place / "wrappers" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(_WRAPPER.format(name=name))
    (place / "libraries").mkdir()
    for name in ("cuda", "nv"):
        (place / "libraries" / name).symlink_to(installed / name)
    return place / "wrappers", place / "libraries"


def version_header() -> Path:
    """Return the file whose content stands for the version of all of them."""
    installed = folder()
    assert installed is not None
    return installed / VERSION_HEADER


def refuse_others(text: bytes, own_folders: Iterable[str]) -> None:
    """Raise `Refusal` at the first header that is installed beside them and cannot run on this target."""
    installed = folder()
    if installed is None:
        return
    for match in _NAMES.finditer(lexical.without_comments(text)):
        name = match[1].decode()
        is_theirs = (installed / name).is_file() and not any(
            (Path(own) / name).is_file() for own in own_folders
        )
        if is_theirs and not (name in HEADERS or name.startswith("nv/")):
            reason = device_names.refusals().get(name, "of the core libraries there is what is host code")
            raise Refusal(match.start(1), f"<{name}> cannot run on the CPU target: {reason}")
        if is_theirs and not _works_without_a_library(installed):
            raise Refusal(match.start(1), f"<{name}> of the installed CCCL is too old for the CPU target: "
                          "3.5 or newer is needed (pip install -U nvidia-cuda-cccl)")  # fmt: skip


def _works_without_a_library(installed: Path) -> bool:
    return _FREESTANDING in (installed / _COMPILER_HEADER).read_text(errors="replace")
