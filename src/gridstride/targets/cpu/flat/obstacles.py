"""What keeps a kernel from the flat tier."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node


class Obstacle(Exception):
    """Report a construct that the flat tier does not take, at a byte position of the text."""

    def __init__(self, node: Node | None, reason: str, position: int | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.position = (node.start_byte if node else 0) if position is None else position
