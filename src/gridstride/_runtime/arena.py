"""What a pool's memory is cut into: blocks, the arenas they belong to, and how scattered the free ones are."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from typing import NamedTuple

from gridstride import _native


class Block(_native.BlockRecord):
    """Hold a piece of a segment; the neighbors are those in the same segment."""

    __slots__ = ()

    ptr: int
    size: int
    arena: Arena
    segment: object
    is_free: bool
    previous: Block | None
    following: Block | None

    def __init__(self, ptr: int, size: int, arena: Arena, segment: object) -> None:
        self.ptr = ptr
        self.size = size
        self.arena = arena
        self.segment = segment
        self.is_free = False
        self.previous = None
        self.following = None

    @property
    def is_whole(self) -> bool:
        """Whether it is all of its segment."""
        return self.previous is None and self.following is None

    def split(self, size: int) -> Block:
        """Keep the first `size` bytes and return the rest as a block."""
        rest = Block(self.ptr + size, self.size - size, self.arena, self.segment)
        self.size = size
        rest.previous, rest.following = self, self.following
        if rest.following is not None:
            rest.following.previous = rest
        self.following = rest
        return rest

    def absorb(self, following: Block) -> None:
        """Take in the next block."""
        self.size += following.size
        self.following = following.following
        if self.following is not None:
            self.following.previous = self


class Arena:
    """Hold the free blocks that work of one stream may use, by size."""

    __slots__ = ("by_size", "end", "heir", "sizes", "stream")

    def __init__(self, stream: int) -> None:
        self.stream = stream
        self.by_size: dict[int, dict[Block, None]] = {}
        #: Sorted; some may have no blocks any more.
        self.sizes: list[int] = []
        #: An event behind all work of the stream, once the stream is gone; and once that is done, who inherits.
        self.end = 0
        self.heir: Arena | None = None

    def blocks(self) -> Iterator[Block]:
        """Yield all free blocks."""
        for blocks in list(self.by_size.values()):
            yield from list(blocks)

    def last_heir(self) -> Arena:
        """Return the arena that blocks of this one go to."""
        arena = self
        while arena.heir is not None:
            arena = arena.heir
        return arena

    def add(self, block: Block) -> None:
        """Take a block up, as one with its free neighbors, which belong to the same arena."""
        block.arena = self
        previous, following = block.previous, block.following
        if previous is not None and previous.is_free:
            self.remove(previous)
            previous.absorb(block)
            block = previous
        if following is not None and following.is_free:
            self.remove(following)
            block.absorb(following)
        block.is_free = True
        blocks = self.by_size.get(block.size)
        if blocks is None:
            blocks = self.by_size[block.size] = {}
            insort(self.sizes, block.size)
        blocks[block] = None

    def remove(self, block: Block) -> None:
        """Let go of a free block."""
        del self.by_size[block.size][block]
        block.is_free = False

    def best_fit(self, size: int, largest: int) -> Block | None:
        """Return the smallest free block of `size` to `largest` bytes, which is free no more; None for none."""
        at = bisect_left(self.sizes, size)
        while at < len(self.sizes) and self.sizes[at] <= largest:
            blocks = self.by_size[self.sizes[at]]
            if blocks:
                block, _ = blocks.popitem()
                block.is_free = False
                return block
            del self.by_size[self.sizes.pop(at)]
        return None


class Fragmentation(NamedTuple):
    """Say how the memory of a pool is cut up.

    Attributes
    ----------
    total_bytes, used_bytes, free_bytes : int
    largest_free : int
        Bytes of the largest free block: what a request can have without growth.
    releasable_bytes : int
        In segments that are free as a whole, which `MemoryPool.free_all_blocks` gives back.
    segments : int
        Pieces taken from the device.
    free_blocks : int
    """

    total_bytes: int
    used_bytes: int
    free_bytes: int
    largest_free: int
    releasable_bytes: int
    segments: int
    free_blocks: int

    @property
    def ratio(self) -> float:
        """The part of the free bytes that lies outside the largest free block: 0 for none, towards 1 for splinters."""
        return 1 - self.largest_free / self.free_bytes if self.free_bytes else 0.0
