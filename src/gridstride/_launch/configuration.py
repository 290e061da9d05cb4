"""Normalize and check launch configurations against a device's limits and a function's attributes."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, NoReturn

from gridstride.targets.base import Dim3, FunctionAttributes, LaunchConfig, Limits

_AXES = "xyz"


def launch_configuration(
    kernel: str, grid: int | Sequence[int], block: int | Sequence[int], shared_mem: int, cooperative: bool
) -> LaunchConfig:
    """Return the configuration for a grid, a block (int or up to three ints) and bytes of shared memory."""
    return LaunchConfig(
        _dimensions(kernel, "grid", grid),
        _dimensions(kernel, "block", block),
        _shared_memory(kernel, shared_mem),
        cooperative,
    )


def check_configuration(
    kernel: str, configuration: LaunchConfig, limits: Limits, attributes: FunctionAttributes
) -> None:
    """Raise ValueError where a configuration is beyond what device or function allow."""
    for what, values, maxima in (
        ("block", configuration.block, limits.max_block),
        ("grid", configuration.grid, limits.max_grid),
    ):
        for axis, value, maximum in zip(_AXES, values, maxima, strict=True):
            if value > maximum:
                _refuse(
                    kernel, configuration, limits, f"{what}.{axis} = {value} is beyond the device's {maximum}"
                )
    threads = configuration.threads
    if threads > limits.max_threads_per_block:
        _refuse(
            kernel,
            configuration,
            limits,
            f"a block of {threads} threads is beyond the device's {limits.max_threads_per_block}",
        )
    if threads > attributes.max_threads_per_block:
        raise ValueError(
            f"{kernel}: a block of {threads} threads is beyond the {attributes.max_threads_per_block} that this "
            f"kernel can have (registers or __launch_bounds__); take a smaller block"
        )
    _check_shared_memory(kernel, configuration, limits, attributes)


def _check_shared_memory(
    kernel: str, configuration: LaunchConfig, limits: Limits, attributes: FunctionAttributes
) -> None:
    static = attributes.shared_size_bytes
    if static + configuration.shared_mem > limits.shared_memory_per_block_optin:
        raise ValueError(
            f"{kernel}: {configuration.shared_mem} bytes of dynamic and {static} bytes of static shared memory "
            f"are beyond the {limits.shared_memory_per_block_optin} bytes that a block can have on {limits.name}"
        )


def _dimensions(kernel: str, what: str, value: int | Sequence[int]) -> Dim3:
    values = _integers(kernel, what, value)
    if not 1 <= len(values) <= 3:
        raise ValueError(f"{kernel}: {what} must have 1 to 3 numbers, got {value!r}")
    for number in values:
        if number < 1:
            raise ValueError(f"{kernel}: every number of {what} must be at least 1, got {value!r}")
    x, y, z = (*values, 1, 1)[:3]
    return x, y, z


def _integers(kernel: str, what: str, value: Any) -> tuple[int, ...]:
    try:
        return (operator.index(value),)
    except TypeError:
        pass
    try:
        return tuple(operator.index(number) for number in value)
    except TypeError:
        raise TypeError(f"{kernel}: {what} must be an int or a tuple of ints, got {value!r}") from None


def _shared_memory(kernel: str, value: Any) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{kernel}: shared_mem must be a number of bytes, got {value!r}") from None
    if not 0 <= number < 2**32:
        raise ValueError(f"{kernel}: shared_mem must be a number of bytes below 2**32, got {number}")
    return number


def _refuse(kernel: str, configuration: LaunchConfig, limits: Limits, reason: str) -> NoReturn:
    swapped = LaunchConfig(configuration.block, configuration.grid)
    hint = ""
    if swapped.threads <= limits.max_threads_per_block and all(
        map(operator.le, swapped.block, limits.max_block)
    ):
        hint = ". Are grid and block swapped? The order is kernel(grid, block, args)"
    raise ValueError(
        f"{kernel}: {reason} ({limits.name}); grid {configuration.grid}, block {configuration.block}{hint}"
    )
