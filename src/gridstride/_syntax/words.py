"""Words of a text: names, keywords and numbers."""

from __future__ import annotations

import re
from functools import lru_cache


@lru_cache(maxsize=256)
def words(text: str) -> frozenset[str]:
    """Return the longest runs of letters, digits and underscores."""
    return frozenset(re.findall(r"\w+", text))


def may_name(text: str, *names: str) -> bool:
    """Return whether a text may use one of some names, also by macros: by pasted ones, or by those of other files."""
    return "##" in text or not words(text).isdisjoint((*names, "include"))
