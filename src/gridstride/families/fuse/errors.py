"""Say what could not be traced, and where in the user's function it stands."""

from __future__ import annotations

import linecache
import re
import sys
import warnings
from pathlib import Path
from types import FrameType

import numpy as np

from gridstride.errors import ArgumentTypeError

_OWN = str(Path(__file__).parent)
#: Whose functions may call what records.
_LIBRARIES = ("numpy", "torch", "cupy")
#: What says that a stand-in for a number was not taken.
_OF_A_NUMBER = re.compile(
    r"\b(of|type|and|component:) Number\b|\bNumber (and|to)\b|'Number'|\bnumbers\.Number\b|\bNumber\.__init__\b"
)


def refusal(kernel: str, what: str) -> TypeError:
    """Return the error for something that cannot be traced."""
    return TypeError(f"fused function `{kernel}`: cannot trace {what}{place_of_user()}")


def foreign_refusal(kernel: str, error: Exception) -> TypeError | None:
    """Return the error for a function of another library that took no stand-in and said so; None for other errors."""
    text = str(error)
    is_of_number = _OF_A_NUMBER.search(text) is not None
    if text.startswith("fused function") or not (is_of_number or "Traced" in text):
        return None
    frame, place = error.__traceback__, ""
    while frame is not None:
        if not frame.tb_frame.f_code.co_filename.startswith(_OWN):
            place = place or _shown(frame.tb_frame.f_code.co_filename, frame.tb_lineno)
        frame = frame.tb_next
    what = "a function of another library: write NumPy's of the same name"
    if is_of_number:
        what = "a function that takes no stand-in for a number: pass it the number as float(...) or int(...)"
    if isinstance(error, ArgumentTypeError):
        what = "a call of a kernel: write what it does, or call it on the result"
    return TypeError(f"fused function `{kernel}`: cannot trace {what}{place}. It said: {error}")


def reported_errors() -> frozenset[str]:
    """Return the errors of floats that NumPy now tells the program of, other than by showing a warning."""
    silent = ("ignore",) if _warnings_are_raised() else ("ignore", "warn")
    return frozenset(kind for kind, how in np.geterr().items() if how not in silent)


def _warnings_are_raised() -> bool:
    """Return whether warnings of floats are errors, whatever they say and wherever."""
    for action, message, category, module, _ in warnings.filters:
        if message is None and module is None and issubclass(RuntimeWarning, category):
            return action == "error"
    return False


def place_of_user() -> str:
    """Return the file, line and text of the user's statement that is under way; "" where there is none."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _is_of_library(frame):
        if frame.f_code.co_name == "_trace" and frame.f_code.co_filename.startswith(_OWN):
            return ""
        frame = frame.f_back
    if frame is None:
        return ""
    return _shown(frame.f_code.co_filename, frame.f_lineno)


def _is_of_library(frame: FrameType) -> bool:
    name = str(frame.f_globals.get("__name__"))
    return (
        frame.f_code.co_filename.startswith((_OWN, "<__array_function__"))
        or name.partition(".")[0] in _LIBRARIES
    )


def _shown(name: str, line: int) -> str:
    text = linecache.getline(name, line).strip()
    return f" ({Path(name).name}, line {line}{f': {text}' if text else ''})"
