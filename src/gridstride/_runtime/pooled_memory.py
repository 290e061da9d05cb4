"""Memory of a pool: a block that goes back with the object that stands for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gridstride import _native
from gridstride._runtime import hooks
from gridstride._runtime.hooks import Piece
from gridstride._runtime.memory import BaseMemory
from gridstride._runtime.pointer import MemoryPointer

if TYPE_CHECKING:
    from gridstride._runtime.arena import Block
    from gridstride._runtime.device_pool import DevicePool

_DEFAULT_STREAM = 0


class PooledMemory(BaseMemory):
    """Stand for a block of a pool, which goes back with the object."""

    __slots__ = ()

    _block: Block | None
    pool: DevicePool

    @_native.shortcut
    def __del__(self) -> None:
        block = getattr(self, "_block", None)
        if block is not None:
            if hooks.entered:
                self.free()
            else:
                self.pool.returned.append(block)

    @property
    def is_on_host(self) -> bool:  # type: ignore[override]
        """Whether the host reads and writes it at the same address."""
        memory = None if self._block is None else getattr(self._block.segment, "mem", None)
        return bool(getattr(memory, "is_on_host", False))

    @property
    def stream(self) -> int:
        """Raw handle of the stream that was current when it was handed out; 0 on targets that never wait."""
        return _DEFAULT_STREAM if self._block is None else self._block.arena.stream

    @property
    def was_given_back(self) -> bool:
        return self._block is None

    def free(self) -> bool:
        """Give the block back to its pool; return False where it was before."""
        block = self._block
        if block is None:
            return False
        self._block = None
        if hooks.entered and not self.pool.is_pinned:
            self._free_watched(block)
        else:
            self.pool.returned.append(block)
        return True

    def _free_watched(self, block: Block) -> None:
        piece = Piece(self.ptr, self.size, self.device_id, id(self))
        try:
            hooks.tell_all("free_preprocess", piece)
        finally:
            self.pool.returned.append(block)
            hooks.tell_all("free_postprocess", piece)


_native.know_pooled_memory(PooledMemory, MemoryPointer)
