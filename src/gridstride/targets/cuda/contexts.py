"""Which device is current: primary contexts, shared with every other library of the process."""

from __future__ import annotations

from collections.abc import Callable
from ctypes import byref, c_int, c_void_p

from gridstride import _forks, _native
from gridstride.targets.cuda.driver import Driver


class ContextCalls:
    """The part of the CUDA target that switches devices."""

    current_device: Callable[[], int]
    set_device: Callable[[int], None]

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        driver.provide_context = self._ensure_context
        self._lock = _forks.Lock()
        self._primary: dict[int, int] = {}
        self._contexts = _native.Contexts(
            driver.address("cuCtxGetCurrent"),
            driver.address("cuCtxSetCurrent"),
            self._device_of_unknown_context,
            self._enter_device,
        )
        self.current_device = self._contexts.current_device
        self.set_device = self._contexts.set_device

    def _primary_context(self, device: int) -> int:
        context = self._primary.get(device)
        if context is None:
            with self._lock:
                context = self._primary.get(device)
                if context is None:
                    context = self._primary[device] = self._retain(device)
                    self._contexts.know(device, context)
        return context

    def _device_of_unknown_context(self) -> int:
        if not self.driver.current_context():
            return 0  # what the CUDA runtime, hence every other library, takes then
        device: int = self.driver.current_device()
        return device

    def _enter_device(self, device: int) -> None:
        self.driver.cuCtxSetCurrent(self._primary_context(device))

    def _retain(self, device: int) -> int:
        ordinal, context = c_int(), c_void_p()
        self.driver.cuDeviceGet(byref(ordinal), device)
        self.driver.cuDevicePrimaryCtxRetain(byref(context), ordinal)
        return context.value or 0

    def _ensure_context(self) -> bool:
        """Make a device current where none is, and return whether that was so.

        The driver's functions of integers come here by themselves.
        """
        if self.driver.current_context():
            return False
        self.set_device(0)
        return True

    def _on(self, device: int) -> _Switch:
        """Make a device current inside a ``with`` block, and afterwards what was current on entry."""
        return _Switch(self.driver, self._primary_context(device))


class _Switch:
    """Make a context current inside a ``with`` block; a function with `contextmanager` takes several times as long."""

    __slots__ = ("_driver", "_previous", "_wanted")

    def __init__(self, driver: Driver, wanted: int) -> None:
        self._driver = driver
        self._wanted = wanted

    def __enter__(self) -> None:
        self._previous: int = self._driver.current_context()
        if self._previous != self._wanted:
            self._driver.cuCtxSetCurrent(self._wanted)

    def __exit__(self, *_: object) -> None:
        if self._previous != self._wanted:
            self._driver.cuCtxSetCurrent(self._previous)
