"""Devices of a target."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Protocol, cast

from gridstride import _native
from gridstride._runtime import tracking
from gridstride._runtime.current import on_device
from gridstride.errors import CUDAError
from gridstride.targets import registry
from gridstride.targets.base import Limits, Target


class ExtensibleTarget(Protocol):
    """Show more devices when asked to; such a target has the feature ``"devices on request"``."""

    def more_devices(self, device: int) -> str:
        """Say how to get so many devices that this one is among them."""
        ...


class Device(_native.DeviceRecord):
    """Name a device and make it current.

    As a context manager it makes the device current for the calling thread; leaving makes that
    device current that was so on entry, also after an exception.

    Parameters
    ----------
    device : int or Device, optional
        Index from 0; the current device by default.
    target : Target, optional
        The default target unless given.

    Raises
    ------
    CUDAError
        Where there is no such device.
    """

    __slots__ = ()

    id: int
    target: Target

    def __init__(self, device: int | Device | None = None, *, target: Target | None = None) -> None:
        if isinstance(device, Device):
            target, device = device.target, device.id
        self.target = registry.default() if target is None else target
        self.id = self.target.current_device() if device is None else _checked(device, self.target)
        self._entries = _native.Entries()

    @_native.shortcut
    def __enter__(self) -> Device:
        previous = self.target.current_device()
        if previous != self.id:
            self.target.set_device(self.id)
        self._entries.push(previous)
        return self

    @_native.shortcut
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.target.set_device(self._entries.pop())

    def __int__(self) -> int:
        return self.id

    def __index__(self) -> int:
        return self.id

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) and self.id == other.id and self.target is other.target

    def __hash__(self) -> int:
        return hash((self.target.name, self.id))

    def __repr__(self) -> str:
        return f"<Device {self.id} of target {self.target.name!r}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self.target.name, self.id)

    def use(self) -> None:
        """Make the device the calling thread's current one."""
        self.target.set_device(self.id)

    def synchronize(self) -> None:
        """Wait for all work on the device.

        Raises
        ------
        CUDAError
            What failed since the last time.
        """
        with on_device(self.target, self.id):
            tracking.synchronize_device(self.target, self.id)

    @property
    def limits(self) -> Limits:
        """What the device allows."""
        return self.target.limits(self.id)

    @property
    def name(self) -> str:
        """The device's name."""
        return self.limits.name

    @property
    def compute_capability(self) -> str:
        """Major and minor version without a dot, for example ``"90"``; empty where there is none."""
        return self.limits.compute_capability.replace(".", "")

    @property
    def attributes(self) -> dict[str, int]:
        """The device's numbers under CUDA's names, for example ``MaxThreadsPerBlock``."""
        limits = self.limits
        attributes = {
            "MaxThreadsPerBlock": limits.max_threads_per_block,
            "MaxSharedMemoryPerBlock": limits.shared_memory_per_block,
            "MaxSharedMemoryPerBlockOptin": limits.shared_memory_per_block_optin,
            "MultiProcessorCount": limits.multiprocessors,
            "WarpSize": limits.warp_size,
        }
        for axis, block, grid in zip("XYZ", limits.max_block, limits.max_grid, strict=True):
            attributes[f"MaxBlockDim{axis}"] = block
            attributes[f"MaxGridDim{axis}"] = grid
        return {**attributes, **limits.attributes}

    @property
    def mem_info(self) -> tuple[int, int]:
        """Free and total bytes of the device's memory."""
        return self.target.memory_info(self.id)


def require_target(what: str, owner: Target, target: Target) -> None:
    """Raise TypeError where a stream, event or pointer belongs to another target than the one at work."""
    if owner is not target:
        raise TypeError(
            f"{what} belongs to target {owner.name!r}, and the call runs on target {target.name!r}"
        )


def _checked(device: int, target: Target) -> int:
    if not hasattr(device, "__index__"):
        raise TypeError(f"a device is named by its number, an integer, got {type(device).__name__}")
    index = device.__index__()
    count = target.device_count()
    if 0 <= index < count:
        return index
    there_are = "there is 1 device" if count == 1 else f"there are {count} devices"
    remedy = ""
    if "devices on request" in target.features:
        remedy = f"; {cast(ExtensibleTarget, target).more_devices(index)}"
    raise CUDAError(
        f"device {index} does not exist: {there_are} on target {target.name!r}, counted from 0{remedy}",
        name="CUDA_ERROR_INVALID_DEVICE",
        code=101,
        call="Device",
    )


def _restored(target: str, device: int) -> Device:
    return Device(device, target=registry.get(target))
