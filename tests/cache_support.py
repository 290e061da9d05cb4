"""Processes that use kernels through one compile cache, and what can be done to them."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from gridstride._compilation.encoding import decode
from gridstride._store import Store

WORKER = Path(__file__).with_name("cache_worker.py")
#: Python warns of forks beside threads, which are what is tested.
STRICT = ("-W", "error", "-W", "ignore:This process:DeprecationWarning")
#: Seconds after which a worker counts as hanging.
PATIENCE = 120
_PR_CAPBSET_DROP, _CAPABILITIES_TO_IGNORE_MODES = 24, (1, 2, 3)
_libc = ctypes.CDLL(None)


class Users(NamedTuple):
    """Start workers for one target that share a folder.

    Attributes
    ----------
    target : str
    folder : pathlib.Path
        Holds the cache and the temporary folder.
    stub : str
        The stub of libcuda for a target without a device.
    """

    target: str
    folder: Path
    stub: str = ""

    @property
    def cache(self) -> Path:
        return self.folder / "cache"

    @property
    def temporary(self) -> Path:
        (self.folder / "temporary").mkdir(exist_ok=True)
        return self.folder / "temporary"

    def command(self, count: int, seed: int = 0, how: str = "plain") -> list[str]:
        return [
            sys.executable,
            "-W",
            "error",
            str(WORKER),
            self.target,
            str(count),
            str(seed),
            how,
            self.stub,
        ]

    def environment(self, **changes: str) -> dict[str, str]:
        inherited = {name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"}
        # CuPy cannot be imported where it has no place for its own cache.
        places = {"GRIDSTRIDE_CACHE_DIR": str(self.cache), "TMPDIR": str(self.temporary)}
        places["CUPY_CACHE_DIR"] = str(self.folder / "cupy")
        return {**inherited, **places, "GRIDSTRIDE_NUM_THREADS": "2", **changes}

    def start(self, count: int, seed: int) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self.command(count, seed), env=self.environment(), text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def run(
        self,
        count: int,
        how: str = "plain",
        *,
        around: str = "",
        drop_privileges: bool = False,
        **changes: str,
    ) -> subprocess.CompletedProcess[str]:
        """Run a worker to its end, if wanted from a shell command with ``$worker`` in it."""
        command = self.command(count, how=how)
        environment = self.environment(**changes)
        if around:
            environment["worker"] = " ".join(f"'{word}'" for word in command)
            command = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-ec", around]
        return subprocess.run(
            command, check=False, env=environment, capture_output=True, text=True, timeout=PATIENCE,
            preexec_fn=drop_rights_beyond_modes if drop_privileges else None,
        )  # fmt: skip

    def succeed(self, count: int, how: str = "plain", **how_else: object) -> int:
        """Run a worker that must not fail; return how much it compiled."""
        done = self.run(count, how, **how_else)  # type: ignore[arg-type]
        assert done.returncode == 0, done.stdout + done.stderr
        assert done.stderr == ""
        return int(done.stdout.split("compiled ")[-1])

    def entries(self, place: Path | None = None) -> Iterator[Path]:
        """Yield the files of the kernels' entries."""
        for entry in Store(place or self.cache).entries():
            if entry.group == self.target:
                yield Path(entry.path)

    def damaged(self) -> list[Path]:
        """Return the entries that are not whole."""
        store = Store(self.cache)
        found = []
        for path in self.entries():
            key = path.stem.rpartition("-")[2]
            content = store.read(key, self.target, path.stem.rpartition("-")[0])
            if content is None or not decode(content).code:
                found.append(path)
        return found


def use_at_once(users: Users, processes: int, kernels: int, killed: int) -> None:
    """Let processes use the same kernels from an empty cache, and kill some of them half way."""
    workers = [users.start(kernels, seed) for seed in range(processes)]
    for worker in workers[:killed]:
        assert worker.stdout is not None
        for _ in range(kernels // 2):
            assert worker.stdout.readline().startswith("used")
        worker.kill()
        worker.communicate()
    for worker in workers[killed:]:
        shown, problems = worker.communicate(timeout=PATIENCE)
        assert worker.returncode == 0, shown + problems
        assert problems == ""
        assert shown.count("used") == kernels
    names = sorted(path.name for path in users.entries())
    assert len(names) == kernels, names
    assert users.damaged() == []


def can_mount() -> bool:
    """Return whether a process may have mounts of its own here."""
    command = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", "mount -t tmpfs none /mnt"]
    try:
        return subprocess.run(command, check=False, capture_output=True).returncode == 0
    except OSError:
        return False


def drop_rights_beyond_modes() -> None:
    """Let the modes of files hold for this process too if it is the superuser's, as they do for others'."""
    for capability in _CAPABILITIES_TO_IGNORE_MODES:
        _libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)
