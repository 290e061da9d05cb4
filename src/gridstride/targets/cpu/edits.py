"""Changes to a text that remember where everything came from, and the refusal of what cannot be changed."""

from __future__ import annotations

from bisect import bisect_right
from typing import NamedTuple


class Refusal(Exception):
    """Report a construct at a byte position that this target cannot run or does not understand."""

    def __init__(self, position: int, message: str) -> None:
        super().__init__(message)
        self.position = position


class Edit(NamedTuple):
    """Replace the bytes from start to end."""

    start: int
    end: int
    replacement: bytes


class Rewritten:
    """Hold a rewritten text that still knows where in the user's text its parts came from."""

    def __init__(self, source: bytes, edits: list[Edit]) -> None:
        self.edits = sorted(edits, key=lambda edit: (edit.start, edit.end))
        self._starts: list[int] = []  # of the replacements, in the rewritten text
        pieces: list[bytes] = []
        position = length = 0
        for edit in self.edits:
            self._starts.append(length + edit.start - position)
            pieces += [source[position : edit.start], edit.replacement]
            length = self._starts[-1] + len(edit.replacement)
            position = edit.end
        self.text = b"".join([*pieces, source[position:]])

    def origin(self, position: int) -> int:
        """Return the position in the user's text for one in the rewritten text."""
        index = bisect_right(self._starts, position) - 1
        if index < 0:
            return position
        edit = self.edits[index]
        beyond = position - self._starts[index] - len(edit.replacement)
        return edit.start if beyond < 0 else edit.end + beyond
