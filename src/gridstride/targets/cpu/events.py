"""The CPU target's events: places in streams, and the times at which they were reached."""

from __future__ import annotations

from dataclasses import dataclass

from gridstride.targets.cpu import host
from gridstride.targets.cpu.operations import Operation
from gridstride.targets.cpu.recording import Recording


@dataclass(eq=False, slots=True)
class Event:
    """Mark a place in a stream.

    Attributes
    ----------
    timing : bool
        Whether its time may be asked for.
    recorded : float or None
        When the work in front of it was complete, in seconds.
    marker : Operation or None
        The place in the queue, in deferred mode.
    recording, nodes
        The capture it was recorded in, and the place there.
    """

    timing: bool
    recorded: float | None = None
    marker: Operation | None = None
    recording: Recording | None = None
    nodes: tuple[Operation, ...] = ()

    def time(self, which: str) -> float:
        """Return when it was reached; a CUDAError of the "start" or the "end" event where that is not known."""
        if self.marker is not None and not self.marker.done:
            raise host.device_error(
                "CUDA_ERROR_NOT_READY", f"the work in front of the {which} event has not run", "elapsed"
            )
        if self.recorded is None or not self.timing:
            reason = "was never recorded" if self.timing else "was created without timing"
            raise host.device_error("CUDA_ERROR_INVALID_HANDLE", f"the {which} event {reason}", "elapsed")
        return self.recorded
