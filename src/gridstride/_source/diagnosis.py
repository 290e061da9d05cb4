"""Make a compiler's refusal speak of the user's expressions: which one, its line, the types, a hint."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import pairwise
from typing import NamedTuple

from gridstride import _dtypes
from gridstride._source.macros import HANDED, clashing
from gridstride._source.types import DType
from gridstride._syntax.quoting import with_caret
from gridstride._syntax.words import without_comments
from gridstride.errors import CompileError
from gridstride.targets.base import Program

_PLACE = re.compile(
    r"^(?P<path>[^\n:(]+)(?::(?P<line>\d+)(?::(?P<column>\d+))?|\((?P<nvrtc>\d+)\)): (?:fatal |catastrophic )?"
    r"error(?: #\S+)?: (?P<text>[^\n]+)(?P<quoted>(?:\n[ \t]+[^\n]*)*)",
    re.MULTILINE,
)
_HINTS = (
    (r"missing (?:terminating|closing)|unterminated (?:string|char)|invalid-pp-token",
     "unterminated string: a newline escape in an ordinary Python string breaks the line; use a raw string r'...'"),
    (r"extended character|not valid in an identifier|unrecognized token|unexpected character|stray '|non-ASCII",
     "a character that C++ does not know, as copied texts have for minus signs, quotation marks and blanks: "
     "write it anew"),
    (r"return-statement with a value|should not return a value|return value type does not match",
     "the text returns nothing: assign the output, y = ..., and write return alone"),
    (r"function[- ]definition is not allowed|template declaration|may not have extern \"C\" linkage|"
     r"templates? cannot be declared",
     "functions, templates and headers stand in the preamble: an expression is part of a function"),
    (r"read-only|modifiable lvalue",
     "inputs, i and n cannot be assigned: declare what is written as an output"),
    (r"(?<!expression )is ambiguous|more than one instance of overloaded",
     "the arguments have several types, or one that the function has no version for: cast them, as in max(x, T(0))"),
    (r"raw_array|no operator \"\[\]\"",
     "a raw parameter is the whole array: index it, x[k], or x[{i, j}] with an index for each axis"),
    (r"subscript|expression must have pointer-to-object type",
     "a parameter is one element unless it is declared raw: write 'raw T x' to index it"),
    (r"unary '\*'|operand of \"\*\" must be a pointer|indirection requires pointer",
     "C++ has no operator ** and no pointers here: write pow(x, y) or x * x"),
    (r"expected (?:a |',' or )?[^\w\s];", "the statement before this place lacks its semicolon"),
    (r"\b(?:__half|__nv_bfloat16)\b",
     "float16 and bfloat16 are calculated with as float: write x + y or exp(x); functions of __half take "
     "__float2half(x)"),
    (r"no match for|no operator|invalid operands|have different types|operand types are incompatible|"
     r"ambiguous \"\?\"|expression is ambiguous",
     "there is no such operation for these types; cast one side, or declare another type"),
    (r"another type than the argument's dtype",
     "convert the argument to the type that the preamble declares, or declare the parameter as T x"),
    (r"than (?:in )?the argument's dtype",
     "the structure that the preamble declares and the argument's dtype must have one layout: "
     "numpy.dtype(..., align=True) lays fields out as C++ does"),
)  # fmt: skip
#: What compilers say of a type that has the name of a placeholder.
_DECLARED_TWICE = re.compile(
    r"(?:redefinition|conflicting declaration|redeclaration).*\b[A-Z]\d*\b|\b[A-Z]\d*\W has already been defined"
)
_UNKNOWN = re.compile(r"not declared|undefined|undeclared|does not name a type|unknown type")
#: Which names a text may use besides what a preamble declares, by how its label begins.
_NAMES = {
    "reduce_expr": "a and b, which it joins",
    "post_map_expr": "a, the outputs, numbers and raw parameters, i, _fold_size, _in_ind.size() and _out_ind.size()",
    "map_expr": "the inputs, i, _J, _in_ind.size() and _out_ind.size()",
    "identity": "constants",
    "reduce_type": "dtypes, C++ types, types such as T",
    "preamble": "types such as T but no parameters",
    "type_preamble": "neither types such as T nor parameters",
    "loop_prep": "n, numbers and raw parameters",
    "after_loop": "n, numbers and raw parameters, what loop_prep declares",
    "": "the kernel's parameters, i and n",
}
#: Names of the standard library by the header that has them.
_HEADERS = (
    (r"M_[A-Z]\w*|HUGE_VALF?", "cmath"),
    (r"(?:FLT|DBL)_[A-Z]\w*", "cfloat"),
    (r"CHAR_BIT|(?:S?CHAR|UCHAR|U?SHRT|U?INT|U?LONG|U?LLONG)_M(?:AX|IN)", "climits"),
    (r"U?INT(?:8|16|32|64)_M(?:AX|IN)", "cstdint"),
)
_OF_STD = re.compile(r"not a member of 'std'|namespace \"std\" has no member|in namespace 'std'")
_PLACEHOLDERS = (
    "an upper-case letter, which digits may follow, is a type placeholder: "
    "give a type of a preamble another name"
)
#: An indexer of a reduction that is used as those of other libraries are.
_INDEXED = re.compile(r"\b_(?:in|out)_ind\b(?!\s*\.\s*size\b)")
_INDEXERS_HINT = (
    "_in_ind and _out_ind have size() alone: the number of an element is i, its place in the fold is _J"
)
_PARAMETER = re.compile(r"\bgridstride_at_(\w+)")
#: What looks like a type placeholder, where compilers say that they do not know it.
_UNKNOWN_PLACEHOLDER = re.compile(r"""['"]([A-Z]\d*)['"]""")
#: Texts that stand within an expression of ours.
_EXPRESSIONS = ("map_expr", "reduce_expr", "identity")
#: Words of Python, and what C++ has for them.
_PYTHON = (
    (re.compile(r"\b(?:True|False)\b"), "C++ writes true and false"),
    (re.compile(r"\bNone\b"), "C++ has no None"),
    (
        re.compile(r"\b(?:np|numpy|math|cp|torch)\s*\."),
        "functions are those of CUDA C++: write abs(x), exp(x), max(x, y)",
    ),
    (re.compile(r"\S\s+if\b.*\belse\b"), "C++ writes condition ? x : y"),
    (re.compile(r"\b(?:if|for|while)\b.*:\s*$"), "C++ writes if (condition) { ... }"),
)
_CLOSING = {")": "(", "]": "[", "}": "{"}
#: Of a masked text.
_OPEN_STRUCTURE = re.compile(r"\b(?:struct|class|union|enum)\b[^;(){}]*\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\}\s*\Z")


class Finding(NamedTuple):
    """Hold the first error in one of the user's texts; columns count bytes, from 1 on, and are 0 where unknown."""

    section: str
    line: int
    column: int
    text: str


def explained(
    error: CompileError,
    program: Program,
    sections: Mapping[str, str],
    types: Mapping[str, DType],
) -> CompileError:
    """Return an error that points at the user's expression, with the types of the call and a hint."""
    found = _first(error.log, sections)
    bound = ", ".join(
        f"{letter} = {dtype if dtype.names else _dtypes.name_of_dtype(dtype)}"
        for letter, dtype in types.items()
    )
    lines = [f"`{program.name}`: the compiler refused its text"]
    macro = _macro_around(program, sections, types, found is None)
    open_end = _open_end(sections)
    misplaced = _misplaced(sections) if found is None or found.section.startswith(_EXPRESSIONS) else ""
    if found is None and not macro and not open_end and not misplaced:
        lines = [str(error)]
    elif found is not None:
        lines += [
            f"{found.section}, line {found.line}: {found.text}",
            *_shown(found, sections[found.section]),
        ]
    if bound:
        lines.append(f"with {bound}")
    message = found.text if found is not None else error.log
    placeholder = _PLACEHOLDERS if _DECLARED_TWICE.search(error.log) else ""
    hints = [
        open_end,
        macro,
        misplaced,
        placeholder,
        _header(found),
        _python(found, sections),
        _names(found),
        _INDEXERS_HINT if found is not None and _INDEXED.search(sections[found.section]) else "",
        *(hint for pattern, hint in _HINTS if re.search(pattern, message)),
    ]
    lines += [f"hint: {hint}" for hint in hints if hint][:1]
    lines.append("The whole text is in the exception's `source`; the compiler's words are in its `log`")
    return CompileError(
        "\n".join(lines), name=program.name, log=error.log, source=program.text, command=error.command
    )


def _header(found: Finding | None) -> str:
    """Return which header has a name of the standard library that a text uses; "" elsewhere."""
    if found is None:
        return ""
    if _OF_STD.search(found.text):
        return "names of std come with their headers: preamble='#include <cmath>', <algorithm>, <limits>, <utility>"
    for names, header in _HEADERS:
        name = re.search(rf"['\"]({names})['\"]", found.text)
        if name and _UNKNOWN.search(found.text):
            return f"{name[1]} comes with a header: preamble='#include <{header}>'"
    return ""


def _names(found: Finding | None) -> str:
    """Return which names a text knows, where it uses another one; "" elsewhere."""
    if found is None or not _UNKNOWN.search(found.text):
        return ""
    placeholder = _UNKNOWN_PLACEHOLDER.search(found.text)
    if placeholder is not None:
        return f"no parameter has the type {placeholder[1]}, which would be a placeholder"
    names = _NAMES.get(found.section.partition(" ")[0], _NAMES[""])
    return f"known there are {names}, what a preamble declares, and CUDA's functions and types"


def _open_end(sections: Mapping[str, str]) -> str:
    """Return which text ends in the middle of something, so that the compiler complains elsewhere; "" for none."""
    for label, text in sections.items():
        plain = without_comments(text)
        opened: list[tuple[str, int]] = []
        for position, character in enumerate(plain):
            if character in _CLOSING.values():
                opened.append((character, position))
            elif character in _CLOSING and (not opened or opened.pop()[0] != _CLOSING[character]):
                return f"the {label} closes a {character!r} that it did not open, in line {_line(plain, position)}"
        if opened:
            bracket, position = opened[-1]
            return f"the {label} does not close the {bracket!r} of line {_line(plain, position)}"
        if "preamble" in label and _OPEN_STRUCTURE.search(plain):
            return f"the {label} ends with a structure: a semicolon follows its brace"
    return ""


def _misplaced(sections: Mapping[str, str]) -> str:
    """Return what a text has that cannot stand where it does: headers, or more than an expression; "" for nothing."""
    for label, text in sections.items():
        plain = without_comments(text)
        if "preamble" not in label and re.search(r"^[ \t]*#[ \t]*include\b", plain, re.MULTILINE):
            return f"the {label} includes a header, which the preamble does"
        if not label.startswith(_EXPRESSIONS):
            continue
        outside = _outside_of_brackets(plain)
        for character, what in ((";", "semicolon"), (",", "comma outside of brackets")):
            if character in outside:
                return f"the {label} is one expression, and has a {what}"
    return ""


def _outside_of_brackets(plain: str) -> str:
    """Return a masked text without what stands in brackets; of templates' arguments too."""
    while True:
        shorter = re.sub(
            r"\([^()\[\]{}]*\)|\[[^()\[\]{}]*\]|\{[^()\[\]{}]*\}|\b<[\w:, ]*>(?=\s*[({:])", "", plain
        )
        if shorter == plain:
            return plain
        plain = shorter


def _python(found: Finding | None, sections: Mapping[str, str]) -> str:
    """Return how C++ writes what the line of an error says as Python does; "" elsewhere."""
    if found is None:
        return ""
    line = without_comments(sections[found.section]).split("\n")[found.line - 1]
    return next((hint for pattern, hint in _PYTHON if pattern.search(line)), "")


def _macro_around(
    program: Program, sections: Mapping[str, str], types: Mapping[str, DType], any_name: bool
) -> str:
    """Return which macro of the user's changes a name that texts are handed, or any around them; "" for none."""
    handed = {*HANDED, *types, *_PARAMETER.findall(program.text)}
    for name in clashing(program.text, sections, program.options):
        if any_name or name in handed:
            return f"the macro {name!r} changes the text around the kernel: give it another name"
    return ""


def _line(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


def _first(log: str, sections: Mapping[str, str]) -> Finding | None:
    for match in _PLACE.finditer(log):
        section = match["path"].strip()
        if section not in sections:
            continue
        line = int(match["line"] or match["nvrtc"])
        lines = sections[section].split("\n")
        if line > len(lines):  # the text ended too early
            line = len(lines)
        column = int(match["column"] or 0) or _column_of_caret(match["quoted"], lines[line - 1])
        return Finding(section, line, column, match["text"].strip())
    return None


def _column_of_caret(quoted: str, line: str) -> int:
    """Return the column of the caret below a line that the compiler repeats, perhaps moved."""
    rows = quoted.strip("\n").split("\n")
    for shown, caret in pairwise(rows):
        if caret.strip().startswith("^") and shown.strip():
            moved = (len(line) - len(line.lstrip())) - (len(shown) - len(shown.lstrip()))
            return max(1, caret.index("^") + moved + 1)
    return 0


def _shown(found: Finding, text: str) -> list[str]:
    line = text.split("\n")[found.line - 1]
    shown = with_caret(line.rstrip("\r"), found.column - 1) if found.column else [line]
    return [f"    {each}" for each in shown]
