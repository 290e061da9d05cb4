"""Settings: what the environment may say, and what is said of the rest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gridstride import config


@pytest.mark.parametrize(
    ("variable", "ask", "text", "value"),
    [
        ("CACHE_SIZE", config.cache_size, "", 1 << 30),
        ("CACHE_SIZE", config.cache_size, " 2e9 ", 2_000_000_000),
        ("CACHE_SIZE", config.cache_size, "0", 0),
        ("NUM_THREADS", config.num_threads, "", None),
        ("NUM_THREADS", config.num_threads, "3", 3),
        ("CPU_DEVICES", config.cpu_devices, "2", 2),
        ("CPU_ASYNC", config.cpu_deferral, "0", None),
        ("CPU_ASYNC", config.cpu_deferral, "17", 17),
        ("LAUNCH_TIMEOUT", config.launch_timeout, "0.5", 0.5),
        ("LAUNCH_TIMEOUT", config.launch_timeout, "inf", float("inf")),
        ("DEBUG", config.debug, "Yes", True),
        ("DEBUG", config.debug, "0", False),
        ("FORBID_COMPILATION", config.compilation_forbidden, "1", True),
        ("NATIVE", config.native_mode, "off", "off"),
        ("NATIVE", config.native_mode, "verify", "verify"),
        ("NATIVE", config.native_mode, "", "on"),
    ],
)
def test_settings(
    variable: str, ask: Callable[[], Any], text: str, value: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"GRIDSTRIDE_{variable}", text)
    assert ask() == value


@pytest.mark.parametrize(
    ("variable", "ask", "text", "words"),
    [
        ("CACHE_SIZE", config.cache_size, "lots", "is not a number"),
        ("CACHE_SIZE", config.cache_size, "inf", "is not a whole number"),
        ("CACHE_SIZE", config.cache_size, "-1", "must be at least 0"),
        ("NUM_THREADS", config.num_threads, "0", "must be at least 1"),
        ("NUM_THREADS", config.num_threads, "inf", "is not a whole number"),
        ("CPU_DEVICES", config.cpu_devices, "1.5", "is not a whole number"),
        ("CPU_ASYNC", config.cpu_deferral, "seed", "is not a number"),
        ("LAUNCH_TIMEOUT", config.launch_timeout, "nan", "must be at least 0"),
    ],
)
def test_settings_that_are_none(
    variable: str, ask: Callable[[], Any], text: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"GRIDSTRIDE_{variable}", text)
    with pytest.raises(ValueError, match=f"GRIDSTRIDE_{variable}='{text}' {words}"):
        ask()
