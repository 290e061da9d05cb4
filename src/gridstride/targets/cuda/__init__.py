"""The CUDA target: NVRTC and the NVIDIA driver."""

from __future__ import annotations

from ctypes import byref, c_int
from typing import TYPE_CHECKING

from gridstride.errors import CUDAError, TargetUnavailable
from gridstride.targets.cuda.driver import LIBRARY, Driver

if TYPE_CHECKING:
    from gridstride.targets.cuda.runtime import CudaTarget

_OTHERWISE = "Or run on the host: gridstride.use_target('cpu')"
_OLDEST_DRIVER = 12


def create(library: str = LIBRARY) -> CudaTarget:
    """Create the target.

    Parameters
    ----------
    library : str
        File name of the driver's library.

    Raises
    ------
    TargetUnavailable
        There is no driver, no device, or no NVRTC that the driver goes with.
    """
    try:
        driver = Driver(library)
    except OSError:
        raise _unavailable(
            f"there is no NVIDIA driver ({library})", "Install the driver of your GPU."
        ) from None
    try:
        version = _initialize(driver)
    except CUDAError as error:
        raise _unavailable(f"the NVIDIA driver says {error}", "See what `nvidia-smi` says.") from None
    # Imported late: a machine without a driver needs none of it.
    from gridstride.targets.cuda import nvrtc
    from gridstride.targets.cuda.runtime import CudaTarget

    newest = min(version, nvrtc.KNOWN_VERSIONS[0])
    found = nvrtc.find(newest)
    if found is None:
        raise _unavailable(
            f"there is no NVRTC that goes with its driver (CUDA {version})",
            f"Run `pip install 'gridstride[cuda{newest}]'`.",
        )
    return CudaTarget(driver, found)


def _initialize(driver: Driver) -> int:
    """Initialize the driver, check that a device answers, and return the driver's major version."""
    driver.cuInit(0)
    count, version = c_int(), c_int()
    driver.cuDeviceGetCount(byref(count))
    driver.cuDriverGetVersion(byref(version))
    major = version.value // 1000
    if count.value == 0:
        raise _unavailable("the NVIDIA driver finds no device", "See what `nvidia-smi` says.")
    if major < _OLDEST_DRIVER:
        raise _unavailable(
            f"the NVIDIA driver is of CUDA {major}", f"Update it to CUDA {_OLDEST_DRIVER} or newer."
        )
    return major


def _unavailable(reason: str, remedy: str) -> TargetUnavailable:
    return TargetUnavailable("cuda", reason, f"{remedy} {_OTHERWISE}")
