"""How files of public projects become kernels: what is cut, what a digest counts, that the battery is whole."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools"))

from kernel_battery import battery, page  # noqa: E402
from kernel_battery.cutting import device_part, digest  # noqa: E402

PROGRAM = """#include <stdio.h>
#include <helper_cuda.h>
#include "own.h"
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
#ifdef TWICE
#define FACTOR 2
#else
#define FACTOR 1
#endif
struct __align__(8) Pair { int a, b; };
template <class T> __device__ T doubled(T x) { return 2 * x; }
template <class T> T on_the_host(T x) { return x; }
namespace inner {
template <int N> __global__ void scale(float *x) { x[threadIdx.x] *= N * FACTOR; }
int host_of_namespace() { return 3; }
}
extern "C" {
__global__ void plain(int *x) { x[0] = 1; }
void launch(int *x) { plain<<<1, 1>>>(x); }
}
template int on_the_host<int>(int);
static int *secret;
int main() { return 0; }
"""


def test_host_code_is_cut_and_lines_keep_their_numbers():
    cut = device_part(PROGRAM, without=("secret",))
    assert len(cut.splitlines()) == len(PROGRAM.splitlines())
    for kept in (
        "struct __align__(8) Pair", "T doubled", "void scale", "void plain", "FACTOR 1", "cooperative_groups.h",
        "namespace cg", "stdio.h",
    ):  # fmt: skip
        assert kept in cut, kept
    for lost in (
        "helper_cuda",
        "own.h",
        "on_the_host",
        "host_of_namespace",
        "launch",
        "main",
        "secret",
        "<<<",
    ):
        assert lost not in cut, lost
    line = next(i for i, text in enumerate(PROGRAM.splitlines()) if "void plain" in text)
    assert "void plain" in cut.splitlines()[line]
    assert device_part(cut) == cut


def test_a_digest_counts_tokens_and_nothing_else():
    text = 'int f(int a) { return a + 1; } // "no string"\nconst char *s = "a // b";'
    same = 'int  f ( int a )\n{ /* \n*/ return a+1; }\nconst char*s="a // b";'
    assert digest(text) == digest(same)
    assert digest(text) != digest(text.replace("a + 1", "a + 2"))
    assert digest(text) != digest(text.replace("a // b", "a // c"))
    assert digest("a b") != digest("ab")


def test_rows_are_told_apart_and_complete():
    keys = [row.key for row in battery.ROWS]
    assert len(set(keys)) == len(keys)
    for row in battery.ROWS:
        assert row.kernels > 0
        assert row.told
        for source in row.sources:
            assert re.fullmatch(r"[\w.-]+/[\w.-]+", source.repository)
            assert source.commit
    assert sum(bool(row.refused) for row in battery.ROWS) < 10


@pytest.mark.parametrize(
    ("found", "apart"),
    [([1.0, -4.0], 0.0), ([1.0, -4.5], 0.125), ([np.nan, -4.0], np.inf), ([1.0, np.inf], np.inf)],
)
def test_how_far_results_are_apart(found, apart):
    assert battery.distance({"x": np.array([1.0, -4.0])}, {"x": np.array(found)}) == apart


def test_the_page_is_made_of_what_was_measured():
    assert page.PAGE.read_text() == page.page()
