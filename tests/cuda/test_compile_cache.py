"""The compile cache among processes, threads and forks that compile with NVRTC, without a device."""

from __future__ import annotations

from pathlib import Path

import pytest
from cache_support import Users, use_at_once

from gridstride.targets.cuda.compiler import Compiler


@pytest.fixture
def users(stub_library: Path, compiler: Compiler, tmp_path: Path) -> Users:
    return Users("cuda", tmp_path, str(stub_library))


@pytest.mark.parametrize(
    ("processes", "kernels", "killed"), [(3, 4, 1), pytest.param(10, 20, 4, marks=pytest.mark.soak)]
)
def test_processes_with_one_empty_cache_some_killed_half_way(
    users: Users, processes: int, kernels: int, killed: int
) -> None:
    use_at_once(users, processes, kernels, killed)
    for how in ("plain", "threads", "fork"):
        assert users.succeed(kernels, how, GRIDSTRIDE_FORBID_COMPILATION="1") == 0


@pytest.mark.parametrize("how", ["threads", "fork"])
def test_an_empty_cache_and_threads_or_forks(users: Users, how: str) -> None:
    """A fork waits for a compilation, so that no child finds NVRTC in the middle of its work."""
    assert users.succeed(4, how) <= 4
    assert users.damaged() == []
    assert users.succeed(4, GRIDSTRIDE_FORBID_COMPILATION="1") == 0
