"""Keywords that calls do not have."""

from __future__ import annotations

import difflib
from collections.abc import Sequence


def unknown_keyword(kernel: str, keyword: str, known: Sequence[str]) -> TypeError:
    """Return the TypeError for a keyword that calls of a kernel do not have; `known` are at least two."""
    near = difflib.get_close_matches(keyword, known, 1)
    return TypeError(
        f"`{kernel}`: a call has no keyword {keyword!r}{f'; did you mean {near[0]!r}?' if near else ';'} "
        f"there are {', '.join(known[:-1])} and {known[-1]}"
    )
