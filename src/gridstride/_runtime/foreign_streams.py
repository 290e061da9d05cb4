"""Streams of other libraries."""

from __future__ import annotations

from typing import Any

from gridstride import arrays
from gridstride.targets.base import Target


def has_cuda_streams(target: Target) -> bool:
    """Return whether streams of CUDA are streams of a target."""
    return arrays.CUDA in target.device_types


def foreign_handle(stream: Any) -> int | None:
    """Return the raw handle of a stream of another library, or None."""
    protocol = getattr(stream, "__cuda_stream__", None)
    if protocol is not None:
        # A property in the protocol's first version, a method since.
        version_and_handle = protocol() if callable(protocol) else protocol
        return int(version_and_handle[1])
    library = type(stream).__module__.partition(".")[0]
    attribute = {"cupy": "ptr", "torch": "cuda_stream"}.get(library, "")
    handle = getattr(stream, attribute, None)
    return None if handle is None else int(handle)
