"""What a target loads: modules, and the functions in them."""

from __future__ import annotations

from typing import Protocol

from gridstride.targets.values import FunctionAttributes


class Module(Protocol):
    """Hold object code that is loaded on a device."""

    def function(self, lowered_name: str, shown_name: str = "") -> Function:
        """Return an entry, which messages call so, or by its own name; KeyError if there is none."""
        ...

    def global_variable(self, lowered_name: str) -> tuple[int, int]:
        """Return address and size in bytes; KeyError if there is none."""
        ...


class Function(Protocol):
    """Hold an entry of a module, ready to launch."""

    def attributes(self) -> FunctionAttributes:
        """Return what the compiler and the device say of it."""
        ...

    def set_attribute(self, name: str, value: int) -> None:
        """Set ``max_dynamic_shared_size_bytes`` or ``preferred_shared_memory_carveout``."""
        ...

    def native_entry(self) -> tuple[int, int] | None:
        """Return (address of a C launch routine, its context) for the compiled fast path, or None.

        The routine has the type ``gridstride_launch_routine`` of ``_native/launch_abi.h``.
        """
        ...

    def failure(self, code: int) -> BaseException:
        """Return the exception for a code other than 0 that the launch routine returned.

        It is a `LaunchError`, or ``KeyboardInterrupt`` where Ctrl-C ended the launch.
        """
        ...
