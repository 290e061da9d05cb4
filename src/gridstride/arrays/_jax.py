"""JAX arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from gridstride.arrays._interface import InterfaceAdapter
from gridstride.arrays._numpy import NumPyAdapter
from gridstride.arrays.adapter import Adapter, descends_from, library_module
from gridstride.arrays.view import ArrayView, Shape
from gridstride.errors import ArgumentTypeError

_ARRAYS, _TRACERS = frozenset({"ArrayImpl"}), frozenset({"Tracer"})


class JAXAdapter(Adapter):
    """JAX arrays: never written to. Waiting for their values is part of looking at them."""

    name = "jax"

    def recognizes(self, kind: type, array: object) -> bool:
        return (
            descends_from(kind, "jaxlib", _ARRAYS)
            or descends_from(kind, "jax", _ARRAYS)
            or descends_from(kind, "jax", _TRACERS)
        )

    def refusal(self, kind: type) -> str | None:
        if descends_from(kind, "jax", _TRACERS):
            return "has no memory: call the kernel outside jit, grad and vmap, or through jax.pure_callback"
        return None

    def view(self, array: Any) -> ArrayView:
        devices = array.devices()
        if len(devices) != 1:
            raise ArgumentTypeError(
                f"a JAX array spread over {len(devices)} devices has no single memory: pass its shards",
                expected="an array on one device",
                got=f"an array on {len(devices)} devices",
            )
        array.block_until_ready()
        if next(iter(devices)).platform == "cpu":
            seen = _on_host.view(np.asarray(array))  # no copy
            return seen._replace(owner=(array, seen.owner), read_only=True, library="jax")
        shown = _on_gpu.view(array)
        if shown is None:
            raise ArgumentTypeError(
                f"a JAX array on {next(iter(devices))} cannot be passed to a kernel: copy it to the host",
                expected="host or CUDA memory",
                got=f"an array on {next(iter(devices))}",
            )
        device = next(iter(devices)).local_hardware_id
        return shown._replace(device=device, read_only=True, library="jax", producer_stream=None)

    def allocate(self, like: Any, shape: Shape, dtype: np.dtype[Any], stream: int) -> np.ndarray[Any, Any]:
        """Return host memory as a NumPy array, since nothing writes to a JAX array; `wrap` makes it one."""
        if next(iter(like.devices())).platform != "cpu":
            raise TypeError("cannot make outputs beside a JAX array on a GPU: pass the output arrays")
        return np.empty(shape, dtype)

    def wrap(self, memory: Any, shape: Shape, dtype: np.dtype[Any], strides: Shape | None = None) -> Any:
        return library_module("jax.numpy").asarray(_on_host.wrap(memory, shape, dtype, strides))


_on_host, _on_gpu = NumPyAdapter(), InterfaceAdapter()
