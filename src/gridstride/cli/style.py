"""Emphasis on a terminal, plain text everywhere else."""

from __future__ import annotations

import os
from typing import TextIO


def bold(text: str, stream: TextIO) -> str:
    """Return a text in bold where a person reads the stream and has not said ``NO_COLOR``."""
    return f"\x1b[1m{text}\x1b[0m" if is_styled(stream) else text


def is_styled(stream: TextIO) -> bool:
    """Return whether escape sequences may be written to a stream."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
