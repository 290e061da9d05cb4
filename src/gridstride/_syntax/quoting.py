"""Lines of a text in messages, with a caret below."""

from __future__ import annotations

import re

#: A longer line is cut around the caret.
_SHOWN_COLUMNS = 240


def with_caret(line: str, column: int) -> list[str]:
    """Return a line and one with a caret below the byte of a column, which is counted from 0."""
    before = line.encode()[: max(column, 0)].decode(errors="ignore")
    shown, place = _cut(line, len(before))
    return [shown, f"{_blanks_for(shown[:place])}^"]


def _cut(line: str, column: int) -> tuple[str, int]:
    """Return the part of a line around a column, and the column in it."""
    if len(line) <= _SHOWN_COLUMNS:
        return line, column
    start = max(min(column, len(line)) - _SHOWN_COLUMNS // 2, 0)
    before = "... " if start else ""
    after = " ..." if start + _SHOWN_COLUMNS < len(line) else ""
    return f"{before}{line[start : start + _SHOWN_COLUMNS]}{after}", column - start + len(before)


def _blanks_for(text: str) -> str:
    """Return blanks that are as wide on a screen as a text; tabs are kept."""
    if text.isascii():
        return re.sub(r"[^\t]", " ", text)
    from unicodedata import combining, east_asian_width

    def blanks(character: str) -> str:
        if character == "\t":
            return "\t"
        if combining(character):
            return ""
        return "  " if east_asian_width(character) in "WF" else " "

    return "".join(map(blanks, text))
