"""What targets answer whose memory and events are those of one process."""

from __future__ import annotations

from typing import NoReturn


class Unshared:
    """Refuse the methods of a target that other processes would need."""

    #: Why, in a sentence.
    unshared = "this target shares no memory or events between processes"

    def memory_handle(self, address: int) -> bytes:
        """Refuse to let other processes open memory."""
        self._refuse()

    def open_memory_handle(self, handle: bytes, device: int) -> int:
        """Refuse to open another process's memory."""
        self._refuse()

    def close_memory_handle(self, address: int, device: int) -> None:
        """Refuse to close another process's memory."""
        self._refuse()

    def event_handle(self, event: int) -> bytes:
        """Refuse to let other processes open an event."""
        self._refuse()

    def open_event_handle(self, handle: bytes) -> int:
        """Refuse to open another process's event."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise NotImplementedError(self.unshared)
