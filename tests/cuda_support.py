"""What the tests of the CUDA target share: programs, and the recording stub of the driver."""

from __future__ import annotations

import ctypes
import json
from typing import Any

from gridstride.targets.base import Program
from gridstride.targets.options import parse_options

ARCH = "sm_90"


def program(
    text: str, *kernels: str, options: tuple[str, ...] = (), compiler: str = "nvrtc", **rest: Any
) -> Program:
    """Return a program named ``test``."""
    return Program(text, "test", parse_options(options, target="cuda", compiler=compiler), kernels, **rest)


class Stub:
    """Read what the stub recorded and tell it when to fail."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library
        library.stub_lines.restype = ctypes.c_char_p

    def clear(self) -> None:
        self._library.stub_clear()

    def calls(self, *names: str) -> list[dict[str, Any]]:
        """Return the recorded calls, of some functions or of all."""
        calls = [json.loads(line) for line in self._library.stub_lines().decode().splitlines()]
        return [call for call in calls if not names or call["call"] in names]

    def names(self) -> list[str]:
        return [call["call"] for call in self.calls()]

    def fail(self, function: str, code: int, after: int = 0) -> None:
        """Let the call after `after` successful ones of a function fail."""
        self._library.stub_fail(function.encode(), code, after)

    def set_static_shared(self, size: int) -> None:
        self._library.stub_set_static_shared(size)
