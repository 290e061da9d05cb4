"""A preprocessed text: which parts of it come from which file."""

from __future__ import annotations

import re
from typing import NamedTuple

from gridstride._syntax import lexical
from gridstride.targets.cpu import user_files

_MARKER = re.compile(rb'^# (\d+) "((?:[^"\\]|\\.)*)"(.*)$', re.MULTILINE)


class Region(NamedTuple):
    """A run of lines of a preprocessed text: bytes from start to end come from a file, from a line on."""

    start: int
    end: int
    path: str
    line: int
    is_of_system: bool

    @property
    def is_the_users(self) -> bool:
        """Whether the file is neither a system's nor ours."""
        return not self.is_of_system and not self.path.startswith("<") and not user_files.is_ours(self.path)


def regions(text: bytes) -> list[Region]:
    """Return the regions of a text in order."""
    markers = list(_MARKER.finditer(text))
    ends = [marker.start() for marker in markers[1:]] + [len(text)]
    return [
        Region(
            marker.end() + 1,
            end,
            re.sub(r"\\(.)", r"\1", marker[2].decode(errors="replace")),
            int(marker[1]),
            b" 3" in marker[3],
        )
        for marker, end in zip(markers, ends, strict=True)
    ]


def users_part(text: bytes, parts: list[Region]) -> bytes:
    """Return the text with all blanked out that is not the user's."""
    view = bytearray(lexical.blank(text))
    for region in parts:
        if region.is_the_users:
            view[region.start : region.end] = text[region.start : region.end]
    return bytes(view)


def without_markers(text: bytes) -> bytes:
    """Return the text in which compilers count its own lines."""
    return _MARKER.sub(b"", text)
