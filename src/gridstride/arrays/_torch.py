"""PyTorch tensors."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache
from math import prod
from typing import Any

import numpy as np

from gridstride import _dtypes
from gridstride.arrays.adapter import Adapter, Allocation, StreamSwitch, descends_from, library_module
from gridstride.arrays.view import CUDA, HOST, ArrayView, Shape, make_view
from gridstride.errors import ArgumentTypeError, with_article

_TENSORS = frozenset({"Tensor"})
_WITHOUT_VALUES = frozenset({"FakeTensor", "FunctionalTensor"})


class TorchAdapter(Adapter):
    """PyTorch tensors on the host and on CUDA devices; PyTorch has a current stream per thread and device."""

    name = "torch"
    stream_device_type = CUDA

    def __init__(self) -> None:
        self._dtypes: dict[Any, np.dtype[Any]] = {}
        self._strided: object = None

    def recognizes(self, kind: type, array: object) -> bool:
        return descends_from(kind, "torch", _TENSORS)

    def refusal(self, kind: type) -> str | None:
        if descends_from(kind, "torch", _WITHOUT_VALUES):
            return "stands for a tensor while PyTorch traces: make the kernel a PyTorch operator"
        return None

    def view(self, array: Any) -> ArrayView:
        if array.requires_grad:
            raise ArgumentTypeError(
                "a tensor that requires gradients would lose them: pass x.detach(), "
                "or make the kernel a PyTorch operator",
                expected="a tensor without gradients",
                got="a tensor with requires_grad=True",
            )
        on_host = array.is_cpu
        dtype = self._dtypes.get(array.dtype)
        if dtype is None or array.layout is not self._strided or not (on_host or array.is_cuda):
            dtype = self._examined(array)
        try:
            address = array.data_ptr()
            if not address and array.numel():
                raise _without_memory(array)
            return make_view(
                (
                    array,
                    address,
                    dtype,
                    tuple(array.shape),
                    None if array.is_contiguous() else _strides_in_bytes(array, dtype.itemsize),
                    HOST if on_host else CUDA,
                    0 if on_host else array.get_device(),
                    False,
                    "torch",
                    array.is_conj() or array.is_neg(),
                    None,
                )
            )
        except RuntimeError as error:  # nested, or a wrapper around others
            raise _without_memory(array) from error

    def allocate(self, like: Any, shape: Shape, dtype: np.dtype[Any], stream: int) -> Any:
        torch = library_module("torch")
        empty, arguments, keywords, _ = self.allocation(like, shape, dtype)
        if like.is_cpu:
            return empty(*arguments, **keywords)
        with torch.cuda.stream(_external_stream(stream, like.get_device())):
            return empty(*arguments, **keywords)

    def allocation(self, like: Any, shape: Shape, dtype: np.dtype[Any]) -> Allocation:
        torch = library_module("torch")
        torch_dtype = getattr(torch, _dtypes.name_of_dtype(dtype))
        # `torch.empty` takes the host twice as long, and `torch.empty_strided` a seventh longer, to read its keywords.
        strides = tuple(prod(shape[axis + 1 :]) for axis in range(len(shape)))
        alike = torch.empty(0, dtype=torch_dtype, device=like.device)
        return Allocation(alike.new_empty_strided, (shape, strides), {})

    def floating_dtype(self) -> np.dtype[Any] | None:
        return _dtype_of(library_module("torch").get_default_dtype())

    def own_dtype(self, dtype: np.dtype[Any]) -> Any:
        return getattr(library_module("torch"), _dtypes.name_of_dtype(dtype))

    def current_stream(self, device: int) -> int | None:
        if not _sees_gpus():
            return None
        return _raw_stream()(device)

    def stream_switch(self) -> StreamSwitch | None:
        if not _sees_gpus():
            return None
        cuda = library_module("torch").cuda
        return StreamSwitch(cuda.current_stream, _external_stream, cuda.set_stream, cuda.set_stream)

    def retain(self, array: Any, stream: int) -> bool:
        if not array.is_cuda:
            return False
        array.record_stream(_external_stream(stream, array.get_device()))
        return True

    def release_cached(self) -> None:
        if _sees_gpus():
            library_module("torch").cuda.empty_cache()

    def wrap(self, memory: Any, shape: Shape, dtype: np.dtype[Any], strides: Shape | None = None) -> Any:
        torch = library_module("torch")
        torch_dtype = getattr(torch, _dtypes.name_of_dtype(dtype))
        elements = torch.as_tensor(memory).view(torch.uint8).view(torch_dtype)
        if strides is None:
            return elements.view(shape)
        return elements.as_strided(shape, [step // dtype.itemsize for step in strides])

    def resolve(self, array: Any) -> Any:
        return array.resolve_conj().resolve_neg()

    def _examined(self, tensor: Any) -> np.dtype[Any]:
        """Return a tensor's dtype, or raise what keeps it from being an argument."""
        torch = library_module("torch")
        if not self._dtypes:
            self._strided = torch.strided
            self._dtypes = {getattr(torch, name): np.dtype(name) for name in _common_dtypes(torch)}
        if not (tensor.is_cpu or tensor.is_cuda):
            raise _refusal(tensor, f"on device {tensor.device}", "copy it to the CPU or to a CUDA device")
        if tensor.layout is not torch.strided:
            raise _refusal(tensor, f"of layout {tensor.layout}", "pass x.to_dense(), or its parts")
        if tensor.dtype is torch.bfloat16:
            self._dtypes[torch.bfloat16] = _dtypes.bfloat16()
        dtype = self._dtypes.get(tensor.dtype)
        if dtype is None:
            raise _refusal(tensor, f"of dtype {tensor.dtype}", "convert it")
        return dtype


@cache
def _sees_gpus() -> bool:
    torch = library_module("torch")
    return bool(torch.cuda.is_available())


@cache
def _raw_stream() -> Callable[[int], int]:
    """Return how to ask for the handle of a device's current stream."""
    torch = library_module("torch")
    # The public way makes an object on every call, which takes forty times as long.
    direct: Callable[[int], int] | None = getattr(torch._C, "_cuda_getCurrentRawStream", None)
    return direct or (lambda device: int(torch.cuda.current_stream(device).cuda_stream))


@cache
def _dtype_of(torch_dtype: Any) -> np.dtype[Any]:
    return _dtypes.dtype_of_name(str(torch_dtype).removeprefix("torch."))


@lru_cache(maxsize=64)
def _external_stream(handle: int, device: int) -> Any:
    return library_module("torch").cuda.ExternalStream(handle, device)


def _common_dtypes(torch: Any) -> list[str]:
    return [name for name in _dtypes.SCALAR_NAMES if name != "bfloat16" and hasattr(torch, name)]


def _strides_in_bytes(tensor: Any, itemsize: int) -> Shape:
    return tuple(step * itemsize for step in tensor.stride())


def _without_memory(tensor: Any) -> ArgumentTypeError:
    return _refusal(tensor, "that has no memory of its own", "pass a plain tensor")


def _refusal(tensor: Any, what: str, remedy: str) -> ArgumentTypeError:
    return ArgumentTypeError(
        f"{with_article(type(tensor).__name__)} {what} cannot be passed to a kernel: {remedy}",
        expected="a strided tensor on the CPU or a CUDA device",
        got=f"{with_article(type(tensor).__name__)} {what}",
    )
