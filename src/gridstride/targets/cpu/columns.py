"""Columns of messages, which compilers count in bytes of the text that they got."""

from __future__ import annotations

import re

_TOKEN = re.compile(rb"\w+|[^\w\s]")


def in_the_users_line(column: int, compiled: bytes, users: bytes) -> int:
    """Return the column in the user's line for one in the line that was compiled.

    The two differ where a macro was expanded or a statement rewritten, and in their blanks. Tokens that both have
    are where they were; what came of others stands where those began.
    """
    from difflib import SequenceMatcher

    theirs, ours = list(_TOKEN.finditer(users)), list(_TOKEN.finditer(compiled))
    here = next((index for index, token in enumerate(ours) if token.end() >= column), len(ours))
    if not theirs:
        return 1
    words = [token[0] for token in theirs], [token[0] for token in ours]
    for kind, first, _, start, end in SequenceMatcher(None, *words, autojunk=False).get_opcodes():
        if start <= here < end:
            token = theirs[min(first + (here - start if kind == "equal" else 0), len(theirs) - 1)]
            within = max(column - 1 - ours[here].start(), 0) if kind == "equal" else 0
            return token.start() + min(within, len(token[0]) - 1) + 1
    return theirs[-1].end()
