"""Macros of the user's, which must not change the text around the user's."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping

from gridstride._arguments.parameters import Declaration
from gridstride._syntax.words import without_comments, words
from gridstride.targets.options import CompileOptions

#: What texts are handed besides their parameters: a macro of such a name is an error.
HANDED = frozenset({"i", "n", "a", "b", "_ind", "_J", "_in_ind", "_out_ind", "_fold_size", "_type_reduce",
                    "type_in0_raw", "type_out0_raw"})  # fmt: skip
#: Which the text around the user's cannot do without, whatever is set aside.
_KEYWORDS = frozenset({"void", "return", "long"})
OWN_LABEL = "text around the kernel"
#: A definition with the lines that go on with it.
_DEFINED = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)(?:[^\n]*\\\n)*[^\n]*", re.MULTILINE)
#: What makes it depend on more than where it stands.
_CONDITION = re.compile(r"^[ \t]*#[ \t]*(?:if|undef|pragma[ \t]+(?:push|pop)_macro)", re.MULTILINE)
_SET_ASIDE = re.compile(r"^#undef (\w+)$", re.MULTILINE)
_LABEL = re.compile(r'^([ \t]*#line 1 "([^"\n]*)")$', re.MULTILINE)


def apart_from_macros(
    text: str, sections: Mapping[str, str], options: CompileOptions, declared: frozenset[str]
) -> str:
    """Return a text in which the user's macros hold in the user's texts alone.

    Names that the user declares are left to macros, as types may be some; and so are those of macros that cannot be
    defined again by their text alone (NVRTC knows no ``push_macro``).
    """
    clash = [name for name in clashing(text, sections, options) if name not in declared | HANDED]
    for name in clash:
        if name in _KEYWORDS:
            kernel = next(iter(sections)).partition(" of ")[2]
            raise ValueError(
                f"`{kernel}`: the macro `{name}` has the name of a keyword, with which the text around the kernel is "
                f"written: give it another one"
            )
    definitions = _definitions(sections, options) if clash else {}
    names = [name for name in clash if name in definitions]
    if not names:
        return text
    aside = "".join(f"#undef {name}\n" for name in names)
    back = "".join(f"\n{definitions[name]}" for name in names)
    return "".join(
        part if is_users or not part.strip() else f"{aside}{part.rstrip()}{back}\n"
        for is_users, part in _parts(text, sections)
    )


def clashing(text: str, sections: Mapping[str, str], options: CompileOptions) -> list[str]:
    """Return the macros of options and texts that change the text around the user's."""
    macros = {name for name, _ in options.defines}
    macros.update(name for name, _ in _defined(sections))
    if not macros:
        return []
    around = " ".join(part for is_users, part in _parts(text, sections) if not is_users)
    return sorted(words(around) & macros - {*_SET_ASIDE.findall(around)})


def _definitions(sections: Mapping[str, str], options: CompileOptions) -> dict[str, str]:
    """Return the definitions of macros that have one, which holds whatever else is defined."""
    found = [(name, f"#define {name} {'1' if value is None else value}") for name, value in options.defines]
    found += _defined(sections)
    is_conditional = any(map(_CONDITION.search, sections.values()))
    counts = Counter(name for name, _ in found)
    return {} if is_conditional else {name: line for name, line in found if counts[name] == 1}


def _defined(sections: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the macros that texts define, each with its definition."""
    for section in sections.values():
        if "define" in section:
            for match in _DEFINED.finditer(without_comments(section)):
                yield match[1], section[match.start() : match.end()]


def declared_words(declaration: Declaration, *others: str) -> frozenset[str]:
    """Return the words with which a user declares parameters and types."""
    parameters = (*declaration.inputs, *declaration.outputs)
    types = (each.ctype for each in parameters if each.dtype is None and not each.is_placeholder)
    return words(" ".join((*types, *(each.name for each in parameters), *others)))


def _parts(text: str, sections: Mapping[str, str]) -> Iterator[tuple[bool, str]]:
    """Yield the user's texts and those around them, each with the line that labels it."""
    first, *rest = _LABEL.split(text)
    is_users, part = False, first
    for line, label, following in zip(rest[::3], rest[1::3], rest[2::3], strict=True):
        if label in sections or label == OWN_LABEL or not is_users:
            yield is_users, part
            is_users, part = label in sections, ""
        part += line + following
    yield is_users, part
