"""Settings, read from the environment when they are asked for.

Every variable is listed in `VARIABLES`; the reference page and ``gridstride info`` are made from it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial

VARIABLES: dict[str, str] = {
    "GRIDSTRIDE_BACKEND": "array library the namespace forwards to: numpy or cupy",
    "GRIDSTRIDE_TARGET": "default target for calls without arrays: cuda, cpu or null",
    "GRIDSTRIDE_CACHE_DIR": "folder of the compile cache",
    "GRIDSTRIDE_CACHE_SIZE": "cap of the compile cache in bytes (default 1 GiB)",
    "GRIDSTRIDE_FORBID_COMPILATION": "1: any compilation is an error (proves a warm cache)",
    "GRIDSTRIDE_CXX": "host compiler of the CPU target (default: g++, clang++, then the ziglang wheel)",
    "GRIDSTRIDE_CPU_TIER": "CPU target's tier for kernels that ask for none: flat or fibers (default: the fastest)",
    "GRIDSTRIDE_NUM_THREADS": "threads of the CPU target (default: the cores this process may use)",
    "GRIDSTRIDE_LAUNCH_TIMEOUT": "seconds without a finished block that end a CPU launch (default 300; 0: never)",
    "GRIDSTRIDE_CPU_DEVICES": "number of devices the CPU target shows (default 1)",
    "GRIDSTRIDE_CPU_ASYNC": "seed: run work of the CPU target only at calls that synchronize, in a random order",
    "GRIDSTRIDE_CHECK_STREAM_ORDER": "1: report memory that two streams use without order; warn: only warn",
    "GRIDSTRIDE_NATIVE": "0: never use the compiled fast path; verify: compare it with the pipeline at every call",
    "GRIDSTRIDE_DEBUG": "1: line information, synchronous launches, checks of indices and of the rules of reductions",
}

_KEYS = {name: os.fsencode(name) for name in (*VARIABLES, "XDG_CACHE_HOME")}
_ON = {"1", "true", "yes", "on"}
_OFF = {"0", "false", "no", "off"}


def text(name: str, default: str = "") -> str:
    """Return a variable's text, stripped."""
    values = getattr(os.environ, "_data", None)  # where Python keeps them: several times as fast to ask
    if not isinstance(values, dict) or name not in _KEYS:
        return os.environ.get(name, default).strip()
    value = values.get(_KEYS[name])
    return default if value is None else os.environ.decodevalue(value).strip()


def teller(name: str) -> Callable[[], object]:
    """Return a function whose result differs for different texts of a variable, many times as fast as `text`."""
    values = getattr(os.environ, "_data", None)  # where Python keeps them, by encoded names
    return (
        partial(values.get, os.fsencode(name)) if isinstance(values, dict) else partial(os.environ.get, name)
    )


def flag(name: str) -> bool:
    """Return whether a variable is switched on."""
    value = text(name)
    return bool(value) and value.lower() in _ON


def number(name: str, default: float, minimum: float = 0) -> float:
    """Return a variable as a number; an unreadable or too small one is a ValueError that names it."""
    value = text(name)
    if not value:
        return default
    try:
        result = float(value)
    except ValueError:
        raise ValueError(f"{name}={value!r} is not a number") from None
    if not result >= minimum:
        raise ValueError(f"{name}={value!r} must be at least {minimum:g}")
    return result


def whole_number(name: str, default: int, minimum: int = 0) -> int:
    """Return a variable as an integer; one that is none is a ValueError that names it."""
    result = float(number(name, default, minimum))
    if not result.is_integer():
        raise ValueError(f"{name}={text(name)!r} is not a whole number")
    return int(result)


def debug() -> bool:
    """Return whether debug mode is on (``GRIDSTRIDE_DEBUG=1``)."""
    return flag("GRIDSTRIDE_DEBUG")


def compilation_forbidden() -> bool:
    """Return whether any compilation shall be an error."""
    return flag("GRIDSTRIDE_FORBID_COMPILATION")


def native_mode() -> str:
    """Return how the compiled fast path is used: ``"on"``, ``"off"`` or ``"verify"``."""
    value = text("GRIDSTRIDE_NATIVE").lower()
    if value in _OFF:
        return "off"
    return "verify" if value == "verify" else "on"


def cache_directory() -> str:
    """Return the wanted place of the compile cache (it need not exist)."""
    chosen = text("GRIDSTRIDE_CACHE_DIR")
    if chosen:
        return os.path.expanduser(chosen) if chosen.startswith("~") else chosen
    base = text("XDG_CACHE_HOME")
    return os.path.join(base if os.path.isabs(base) else os.path.join(_home(), ".cache"), "gridstride")


def _home() -> str:
    """Return the user's home; where there is none a device, below which nothing can be made."""
    home = os.path.expanduser("~") if os.environ.get("HOME", "unset") else ""
    return home if os.path.isabs(home) and os.path.isdir(home) else os.devnull


def cache_size() -> int:
    """Return the cap of the compile cache in bytes."""
    return whole_number("GRIDSTRIDE_CACHE_SIZE", 1 << 30)


def launch_timeout() -> float:
    """Return the seconds without progress after which a CPU launch is ended (0: never)."""
    return number("GRIDSTRIDE_LAUNCH_TIMEOUT", 300.0)


def num_threads() -> int | None:
    """Return the number of threads asked for by the environment, or None."""
    value = text("GRIDSTRIDE_NUM_THREADS")
    return whole_number("GRIDSTRIDE_NUM_THREADS", 1, 1) if value else None


def cpu_tier(tiers: Sequence[str]) -> str:
    """Return the tier of the CPU target that the environment asks for, "" for the fastest."""
    value = text("GRIDSTRIDE_CPU_TIER").lower()
    if value and value not in tiers:
        raise ValueError(f"GRIDSTRIDE_CPU_TIER={value!r} is none of the tiers: {', '.join(tiers)}")
    return value


def cpu_devices() -> int:
    """Return how many devices the CPU target shows."""
    return whole_number("GRIDSTRIDE_CPU_DEVICES", 1, 1)


def cpu_deferral() -> int | None:
    """Return the seed of the CPU target's deferred mode; None where work runs at once."""
    return whole_number("GRIDSTRIDE_CPU_ASYNC", 0) or None


def stream_order_check() -> str:
    """Return what to do about streams without order: ``"raise"``, ``"warn"`` or ``""`` for nothing."""
    value = text("GRIDSTRIDE_CHECK_STREAM_ORDER").lower()
    if value == "warn":
        return "warn"
    return "raise" if value in _ON else ""
