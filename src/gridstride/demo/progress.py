"""Tell people how far a program is: one changing line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from typing import TextIO

_WIDTH = 78


class Progress:
    """Announce the stages of a program and what became of them.

    Parameters
    ----------
    stages : int
        How many stages there will be.
    stream : text stream
        Where the lines go.
    """

    def __init__(self, stages: int, stream: TextIO) -> None:
        self._stages = stages
        self._stream = stream
        self._changes_lines = stream.isatty()
        self._number = 0
        self._title = ""
        self._begin = 0.0

    def start(self, title: str) -> None:
        """Announce the next stage."""
        self._number += 1
        self._title = title
        self._begin = time.perf_counter()
        self.update("")

    def update(self, what: str) -> None:
        """Say what the stage does at the moment; only a terminal shows it."""
        if self._changes_lines:
            line = f"{self._head()} ... {what}"[:_WIDTH]
            self._stream.write(f"\r{line:<{_WIDTH}}")
            self._stream.flush()

    def finish(self, result: str) -> None:
        """Say how the stage ended."""
        line = f"{self._head()}  {time.perf_counter() - self._begin:5.1f} s  {result}"
        self._stream.write(f"\r{line:<{_WIDTH}}\n" if self._changes_lines else f"{line}\n")
        self._stream.flush()

    def _head(self) -> str:
        return f"[{self._number}/{self._stages}] {self._title:<9}"
