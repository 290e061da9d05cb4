"""Functions about the default target's devices."""

from __future__ import annotations

from gridstride import arrays
from gridstride._runtime.device import Device
from gridstride.errors import TargetUnavailable
from gridstride.targets import registry


def get_device_id() -> int:
    """Return the index of the calling thread's current device."""
    return registry.default().current_device()


def set_device(device: int | Device) -> None:
    """Make a device the calling thread's current one.

    Raises
    ------
    CUDAError
        Where there is no such device.
    """
    Device(device).use()


def synchronize() -> None:
    """Wait for all work on the current device; raise `CUDAError` for what failed."""
    Device().synchronize()


def is_available() -> bool:
    """Return whether a target with real GPUs answers on this machine."""
    return any(_has_gpus(name) for name in registry.names())


def get_cublas_handle() -> int:
    """Return CuPy's cuBLAS handle for the current device.

    Raises
    ------
    NotImplementedError
        On a target without GPUs.
    """
    target = registry.default()
    if "gpu" not in target.features:
        raise NotImplementedError(
            f"cuBLAS runs on GPUs, and the default target is {target.name!r}: call numpy's linear algebra"
        )
    handle: int = arrays.library_module("cupy").cuda.device.get_cublas_handle()
    return handle


def _has_gpus(name: str) -> bool:
    try:
        target = registry.get(name)
    except TargetUnavailable:
        return False
    return "gpu" in target.features and target.device_count() > 0
