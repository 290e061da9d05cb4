"""CUDA's runtime functions that every target answers; other names are those of ``cuda.bindings.runtime``."""

from gridstride._runtime.device import Device
from gridstride.cuda.devices import get_device_id, set_device, synchronize
from gridstride.cuda.forwarding import forwarder
from gridstride.errors import CUDAError
from gridstride.targets import registry

__getattr__, __dir__ = forwarder("runtime")

CUDARuntimeError = CUDAError

getDevice = get_device_id  # noqa: N816
setDevice = set_device  # noqa: N816
deviceSynchronize = synchronize  # noqa: N816


def getDeviceCount() -> int:  # noqa: N802 - CUDA's spelling
    """Return how many devices the default target has."""
    return registry.default().device_count()


def memGetInfo() -> tuple[int, int]:  # noqa: N802 - CUDA's spelling
    """Return free and total bytes of the current device."""
    return Device().mem_info
