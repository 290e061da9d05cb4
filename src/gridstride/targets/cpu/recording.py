"""What a capture of the CPU target recorded: operations with their order, ready to run again."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING

from gridstride.targets.cpu import host
from gridstride.targets.cpu.operations import Operation, needed_for

if TYPE_CHECKING:
    from gridstride.targets.cpu.queues import Lane

_numbers = itertools.count(1)


class Recording:
    """Collect the operations of the streams that take part in a capture.

    Parameters
    ----------
    origin : Lane
        The stream in which the capture began.

    Attributes
    ----------
    number : int
        Names the capture; never used again.
    lanes : list of Lane
        The streams that take part.
    nodes : list of Operation
        In the order in which they were issued.
    is_valid, is_ended : bool
    """

    def __init__(self, origin: Lane) -> None:
        self.number = next(_numbers)
        self.origin = origin
        self.lanes = [origin]
        self.nodes: list[Operation] = []
        self.is_valid = True
        self.is_ended = False

    def add(self, node: Operation) -> Operation:
        """Take in an operation."""
        self.nodes.append(node)
        return node

    def check(self, last: Sequence[Operation]) -> None:
        """Raise `CUDAError` where a forbidden call spoiled the capture or a stream was not joined.

        Parameters
        ----------
        last : sequence of Operation
            What the stream of the beginning waits for at the end.
        """
        if not self.is_valid:
            message = "an earlier call was not allowed during the capture and spoiled it"
            raise host.device_error("CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", message, "end_capture")
        if len(needed_for(last)) < len(self.nodes):
            message = (
                "a stream that joined the capture has work that the first stream does not wait for: "
                "record an event there and let the first stream wait for it"
            )
            raise host.device_error("CUDA_ERROR_STREAM_CAPTURE_UNJOINED", message, "end_capture")

    def dot(self) -> str:
        """Return a picture in the DOT language."""
        names = {node: f"node{number}" for number, node in enumerate(self.nodes)}
        lines = [f'  {name} [label="{_escaped(node.label)}"];' for node, name in names.items()]
        lines += [f"  {names[before]} -> {name};" for node, name in names.items() for before in node.after]
        return "\n".join(["digraph graph {", "  node [shape=box];", *lines, "}", ""])


def _escaped(label: str) -> str:
    return label.replace("\\", "\\\\").replace('"', '\\"')
