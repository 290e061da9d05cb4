"""Texts with one mistake each, and where a message must point: file, line, and what stands above the caret."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from gridstride.errors import CompileError

HEADERS = {
    "plain.cuh": "#pragma once\n__device__ int helper(int v) {\n    return v + missing;\n}\n",
    "generic.cuh": "#pragma once\ntemplate <class T> __device__ T half_of(T v) {\n    return v.missing() / 2;\n}\n",
    "shared.cuh": (
        "template <int N> __device__ int sum(int v) {\n    __shared__ int s[N]; s[0] = v;\n"
        "    return s[0]  +\tmissing;\n}\n"
    ),
    "fine.cuh": "#define SQUARE(x) ((x) * (x))\n__device__ int fine() { __shared__ int s[2]; return s[0]; }\n",
}


class Place(NamedTuple):
    """A mistake: the text, the line to name, what the caret stands below, and in which file."""

    text: str
    line: int
    words: tuple[str, ...]
    file: str = "test.cu"


_K = 'extern "C" __global__ void k(int* x) {'
PLACES = {
    "a plain one": Place(f"{_K}\n    int a = 1;\n    x[0] = a + missing;\n}}", 3, ("missing",)),
    "beside shared memory": Place(f"{_K}\n    __shared__ int s[32]; x[1] = missing; s[0] = 1;\n}}", 2, ("missing",)),
    "below a declaration of two lines": Place(
        f"{_K}\n    __shared__ __align__(16) int s\n        [32];\n    s[0] = 1; x[0] = missing;\n}}", 4, ("missing",)
    ),
    "in a macro": Place(
        f"#define TWICE(v) ((v) * missing)\n{_K}\n    x[0] =\n        TWICE(3);\n}}", 4, ("TWICE", "3", ")")
    ),
    "behind a macro on a line": Place(
        f'#include "fine.cuh"\n{_K}\n    x[0] = SQUARE(2)  +  SQUARE(3);\t\tx[1] = missing;\n}}', 3, ("missing",)
    ),
    "before a macro on a line": Place(
        f'#include "fine.cuh"\n{_K}\n\tx[1]   =   missing; x[0] = SQUARE(2) + SQUARE(3);\n}}', 3, ("missing",)
    ),
    "behind inline PTX": Place(
        f'{_K}\n    unsigned l; asm("mov.u32 %0, %%laneid;" : "=r"(l)); x[0] = missing + l;\n}}', 2, ("missing",)
    ),
    "below inline PTX": Place(
        f'{_K}\n    unsigned l;\n    asm("mov.u32 %0, %%laneid;"\n        : "=r"(l)\n    );\n    x[0] = missing;\n}}',
        6,
        ("missing",),
    ),
    "behind letters of several bytes": Place(
        f'{_K}\n    /* ünï 日本 */ const char* s = "é"; x[0] = missing;\n}}', 2, ("missing",)
    ),
    "behind tabs": Place(f"{_K}\n\t\tx[0] =\tmissing;\n}}", 2, ("missing",)),
    "with the line ends of Windows": Place(f"{_K}\r\n    int a;\r\n    x[0] = missing;\r\n}}\r\n", 3, ("missing",)),
    "behind a raw string of several lines": Place(
        f'{_K}\n    printf(R"(a\nb\nc)"); x[0] = missing;\n}}', 4, ("missing",)
    ),
    "behind what is left out": Place(f'#if 0\n garbage ( {{ "\n#endif\n{_K}\n    x[0] = missing;\n}}', 5, ("missing",)),
    "behind casts": Place(f"{_K}\n    float f = 2; x[0] = (int)f + (int)(f * 2) + missing;\n}}", 2, ("missing",)),
    "in a lambda": Place(
        f"__device__ void g(int, int);\n{_K}\n    auto l = [&](int v) {{ g(v); }};\n    l(1);\n}}", 3, ("g", "(", ")")
    ),
    "in a template that is used elsewhere": Place(
        f"template <class T> struct Q {{\n    __device__ T f(T v) {{\n        return v.missing;\n    }}\n}};\n\n"
        f"{_K}\n    Q<int> q;\n    x[0] = q.f(1);\n}}", 3, ("v", "missing"),
    ),
    "below a #line of the user's": Place(
        f'#line 100 "mine.cu"\n{_K}\n    x[0] = missing;\n}}', 101, ("missing",), "mine.cu"
    ),
    "in a header": Place(f'#include "plain.cuh"\n{_K} x[0] = helper(1); }}', 3, ("missing",), "plain.cuh"),
    "in a template of a header": Place(
        f'#include "generic.cuh"\n{_K}\n    x[0] = half_of(2);\n}}', 3, ("v", "missing"), "generic.cuh"
    ),
    "in a header with shared memory": Place(
        f'#include "shared.cuh"\n{_K}\n    x[0] = sum<32>(2);\n}}', 3, ("missing",), "shared.cuh"
    ),
}  # fmt: skip


def write_headers(folder: Path) -> str:
    """Write the headers into a folder, and return the option that names it."""
    for name, text in HEADERS.items():
        (folder / name).write_text(text)
    return f"-I{folder}"


def check(error: CompileError, place: Place) -> None:
    """Assert that an error points to a place."""
    message = str(error)
    named = re.search(rf"(?:^|[\s/]){re.escape(place.file)}[:(](\d+)[:)]", message, re.MULTILINE)
    assert named is not None, message
    assert int(named[1]) == place.line, message
    lines = message.splitlines()
    caret = next(number for number, line in enumerate(lines) if line.strip() == "^")
    quoted, column = lines[caret - 1], _width(lines[caret][: lines[caret].index("^")])
    ends = [_width(quoted[: number + 1]) for number in range(len(quoted))]
    rest = quoted[next(number for number, end in enumerate(ends) if end > column) :]
    assert rest.startswith(place.words), message


def _width(text: str) -> int:
    return sum(2 if ord(character) > 0x2E80 else 1 for character in text)
