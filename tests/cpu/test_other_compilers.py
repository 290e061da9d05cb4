"""What other compilers than the first one found must take as well: each way that a text takes to them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from shutil import which

import compiler_worker
import pytest

from tests.crosses import in_soak


@pytest.mark.parametrize("compiler", ["clang++", "zig", *in_soak("g++")])
def test_every_way_of_a_text_ends_well(tmp_path: Path, compiler: str) -> None:
    if compiler == "zig":
        pytest.importorskip("ziglang")
    elif which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    command = f"{sys.executable} -m ziglang c++" if compiler == "zig" else compiler
    changes = {
        "GRIDSTRIDE_CACHE_DIR": str(tmp_path / "cache"),
        "GRIDSTRIDE_TARGET": "cpu",
        "GRIDSTRIDE_CXX": command,
    }
    done = subprocess.run(
        [sys.executable, "-W", "error", compiler_worker.__file__], check=False, capture_output=True, text=True,
        cwd=tmp_path, env=os.environ | changes,
    )  # fmt: skip
    assert done.stdout == "right\n", done.stderr
