"""Words of a text: names, keywords and numbers."""

from __future__ import annotations

import re
from functools import lru_cache

#: Of C++17, with other spellings of operators.
_KEYWORD_TEXT = """
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t class compl const
    const_cast constexpr continue decltype default delete do double dynamic_cast else enum explicit export extern false
    float for friend goto if inline int long mutable namespace new noexcept not not_eq nullptr operator or or_eq private
    protected public register reinterpret_cast return short signed sizeof static static_assert static_cast struct switch
    template this thread_local throw true try typedef typeid typename union unsigned using virtual void volatile wchar_t
    while xor xor_eq
"""
KEYWORDS = frozenset(_KEYWORD_TEXT.split())


@lru_cache(maxsize=256)
def words(text: str) -> frozenset[str]:
    """Return the longest runs of letters, digits and underscores."""
    return frozenset(re.findall(r"\w+", text))


#: Names, numbers and operators of one or two characters, as far as choices between values need them.
_TOKEN = re.compile(r"\w+|&&|\|\||[<>=!]=|\S")


def spaced(text: str) -> str:
    """Return the tokens of a text, a space after each."""
    return "".join(f"{token} " for token in _TOKEN.findall(text))


def without_comments(text: str) -> str:
    """Blank out comments and the insides of strings, which most texts have not; all else keeps its place."""
    if not any(mark in text for mark in ("'", '"', "//", "/*")):
        return text
    from gridstride._syntax import lexical

    return lexical.mask(text.encode("latin-1", "replace")).decode("latin-1")


#: No file of ours has a macro that names what a kernel's texts are told.
_OWN_INCLUDES = re.compile(r"#[ \t]*include[ \t]*<gridstride/[^>\n]*>")


def may_name(text: str, *names: str) -> bool:
    """Return whether a text may use one of some names, also by macros: by pasted ones, or by those of other files."""
    return "##" in text or not words(_OWN_INCLUDES.sub("", text)).isdisjoint((*names, "include"))


def includes_others(text: str) -> bool:
    """Return whether a text includes files that are not ours."""
    return "include" in words(_OWN_INCLUDES.sub("", text))
