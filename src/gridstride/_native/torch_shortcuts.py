"""Find short ways to what PyTorch tells of tensors and of its current stream.

PyTorch's functions for C code take several times as long as all the rest of a call. Where a tensor
keeps what they tell is searched in the memory of sample tensors. The layout says nothing of what the
values mean: a tensor is asked through PyTorch's functions, and the answer holds for every tensor
whose `kind` and `keys` are the same bytes. Where a place is in doubt PyTorch is asked each time.
"""

from __future__ import annotations

import ctypes
import os
import sys
from typing import Any, NamedTuple

from gridstride._native import _launcher
from gridstride._native.memory_search import memories, place_of, place_where

#: Bytes of what is searched: as many as the allocator gives for the smallest version known.
_TENSOR_BYTES, _STORAGE_BYTES = 184, 80
_WORD = 8
#: PyTorch keeps the axes of a tensor with more of them elsewhere.
_FEW_AXES = 5
_AXES = ("axes", "lengths")
#: Type and index of a device as tensors keep them: of the host, and of the device "meta", which has no memory.
_HOST, _NOWHERE = b"\x00\xff", b"\x0e\xff"
#: c10::cuda::getCurrentCUDAStream(signed char), as it is exported.
_STREAM_LIBRARY, _STREAM_FUNCTION = "libc10_cuda.so", "_ZN3c104cuda20getCurrentCUDAStreamEa"
#: CUDA's name for the calling thread's default stream; it needs not be created.
_PER_THREAD_STREAM = 2
_CUDA = 1


class Layout(NamedTuple):
    """Tell where fields are, in bytes from the start of what holds them, in the order in which the C code reads it.

    Attributes
    ----------
    implementation : int
        In the Python object: pointer to the C++ tensor.
    storage, record : int
        In the C++ tensor: pointers to its storage and to its record of automatic differentiation,
        null where it wants no gradient.
    first, size : int
        In the C++ tensor: the position of its first element in the storage, and how many it has.
    kind : int
        In the C++ tensor: eight bytes that differ for different dtypes, devices and contiguity.
    keys : int
        In the C++ tensor: eight bytes that differ for tensors whose values are not the bytes of a
        strided tensor.
    place : int
        In the C++ tensor, within `kind`: two bytes, the type and the index of its device.
    data : int
        In the storage: its address.
    guarded : int
        In the storage: a byte that is 0 where the address may be taken without asking.
    axes, lengths : int
        In the C++ tensor: how many axes it has, and the lengths of up to `_FEW_AXES`, behind which are
        their steps. Both are 0 where a place is in doubt; PyTorch is asked then.
    """

    implementation: int
    storage: int
    record: int
    first: int
    size: int
    kind: int
    keys: int
    place: int
    data: int
    guarded: int
    axes: int
    lengths: int


def learn(torch: Any) -> None:
    """Give the C code the short ways that a module ``torch`` has."""
    try:
        layout = find_layout(torch)
    except Exception:  # the samples are beyond what this PyTorch takes
        layout = None
    if layout is not None:
        _launcher.know_torch_layout(layout)


def find_layout(torch: Any) -> Layout | None:
    """Return where the fields of tensors are, or None where a place is in doubt."""
    with torch.inference_mode(False), torch.enable_grad(), torch.device("cpu"):
        plain, wanting, unlike = _plain(torch), _wanting(torch), _unlike(torch)
        copied = torch._lazy_clone(torch.ones(5))
        stored = [tensor.untyped_storage() for tensor in plain]
    held = memories([tensor._cdata for tensor in plain], _TENSOR_BYTES)
    held_wanting = memories([tensor._cdata for tensor in wanting], _TENSOR_BYTES)
    held_unlike = memories([tensor._cdata for tensor in unlike], _TENSOR_BYTES)
    storages = memories([storage._cdata for storage in stored], _STORAGE_BYTES)
    guarded = memories([copied.untyped_storage()._cdata], _STORAGE_BYTES)
    kinds = [(tensor.dtype, tensor.is_contiguous()) for tensor in plain]
    objects = memories([id(tensor) for tensor in plain], torch.Tensor.__basicsize__)
    layout = Layout(
        implementation=place_of(objects, [tensor._cdata for tensor in plain], start=object.__basicsize__),
        storage=place_of(held, [storage._cdata for storage in stored]),
        record=place_where([*held, *held_wanting], lambda *words: _are_null(words, len(held))),
        first=place_of(held, [tensor.storage_offset() for tensor in plain]),
        size=place_of(held, [tensor.numel() for tensor in plain]),
        kind=place_where(held, lambda *words: _tell_apart(words, kinds)),
        keys=place_where(
            [*held, *held_unlike], lambda *words: _are_one_and_not(words[: len(held)], words[len(held) :])
        ),
        place=place_where(
            [*held, *held_unlike], lambda *pairs: _are_devices(pairs, [*plain, *unlike]), width=len(_HOST)
        ),
        data=place_of(storages, [storage.data_ptr() for storage in stored]),
        guarded=place_where(
            [*storages, *guarded], lambda *bytes_: bytes_ == (b"\0",) * len(storages) + (b"\1",), width=1
        ),
        axes=0,
        lengths=0,
    )._replace(**_find_axes(held, plain))
    is_complete = all(layout[: -len(_AXES)]) and layout.kind <= layout.place < layout.kind + _WORD
    return layout if is_complete else None


def _find_axes(held: list[bytes], tensors: list[Any]) -> dict[str, int]:
    """Return where the axes are: their number, then lengths, then steps in elements, each a word."""
    axes = place_of(held, [tensor.dim() for tensor in tensors])
    lengths = axes + _WORD

    def words(memory: bytes, at: int, count: int) -> list[int]:
        return [
            int.from_bytes(memory[at + k * _WORD : at + (k + 1) * _WORD], sys.byteorder) for k in range(count)
        ]

    agree = all(
        words(memory, lengths, tensor.dim()) == list(tensor.shape)
        and words(memory, lengths + _FEW_AXES * _WORD, tensor.dim()) == list(tensor.stride())
        for memory, tensor in zip(held, tensors, strict=True)
    )
    return dict(zip(_AXES, (axes, lengths), strict=True)) if axes and agree else {}


def learn_stream(torch: Any, device: int) -> bool:
    """Give the C code the function that names the current stream, and return whether there is one.

    Parameters
    ----------
    torch : module
    device : int
        Index of a device that PyTorch has used.
    """
    try:
        address = _stream_function()
        agree = address != 0 and _streams_agree(torch, device, address)
    except Exception:  # there is no such library or function, or not what is tried
        agree = False
    if agree:
        _launcher.know_torch_stream(address)
    return agree


def _plain(torch: Any) -> list[Any]:
    """Return tensors that own their memory and differ in each field."""
    import numpy as np

    owned = [
        torch.zeros(3),
        torch.ones((2, 2), dtype=torch.float64),
        torch.arange(4),
        torch.zeros((5, 1, 2), dtype=torch.int16),
        torch.zeros((), dtype=torch.bool),
        torch.empty(0),
        torch.zeros((2, 3), dtype=torch.complex64),
        # Of memory that is not PyTorch's own, address and owner differ.
        torch.from_numpy(np.zeros(7, np.float32)),
    ]
    # Views would have a record of automatic differentiation.
    parts = [
        torch.empty(0).set_(torch.zeros(20).untyped_storage(), first, shape, strides)
        for first, shape, strides in ((2, (9,), (1,)), (5, (3, 4), (1, 3)), (1, (6,), (2,)))
    ]
    return [*owned, *parts]


def _wanting(torch: Any) -> list[Any]:
    """Return tensors that want gradients."""
    leaf = torch.zeros(3, requires_grad=True)
    return [leaf, torch.nn.Parameter(torch.ones(2)), 2 * leaf]


def _unlike(torch: Any) -> list[Any]:
    """Return tensors whose values are not the bytes of a strided tensor in memory."""
    numbers = torch.ones(4, dtype=torch.complex64).conj()
    return [
        numbers,
        numbers.imag,
        torch.zeros(4, device="meta"),
        torch.zeros((2, 2)).to_sparse(),
        torch._efficientzerotensor((3,)),
    ]


def _are_null(words: tuple[bytes, ...], count: int) -> bool:
    """Return whether the first `count` words are null and the others are not."""
    return not any(map(any, words[:count])) and all(map(any, words[count:]))


def _are_devices(pairs: tuple[bytes, ...], tensors: list[Any]) -> bool:
    """Return whether each pair of bytes is the place of a tensor on the host or on no device at all."""
    return all(
        pair == (_NOWHERE if tensor.is_meta else _HOST) for pair, tensor in zip(pairs, tensors, strict=True)
    )


def _tell_apart(words: tuple[bytes, ...], kinds: list[Any]) -> bool:
    """Return whether each word belongs to one kind, and samples share words."""
    return len(set(zip(words, kinds, strict=True))) == len(set(words)) < len(words) - 1


def _are_one_and_not(words: tuple[bytes, ...], others: tuple[bytes, ...]) -> bool:
    """Return whether all words are equal and none of the others is."""
    return len({*words}) == 1 and words[0] not in others


def _stream_function() -> int:
    library = ctypes.CDLL(_STREAM_LIBRARY, mode=os.RTLD_NOLOAD)
    return ctypes.cast(library[_STREAM_FUNCTION], ctypes.c_void_p).value or 0


def _streams_agree(torch: Any, device: int, address: int) -> bool:
    """Return whether a function tells the stream that PyTorch names, also while another one is current."""

    def agree() -> bool:
        named = torch.cuda.current_stream(device)
        is_default = named.cuda_stream == 0
        told = _launcher.torch_stream_fields(address, device)
        return bool(told == (_CUDA, device, named.stream_id) and is_default == (named.stream_id == 0))

    found = agree()
    with torch.cuda.stream(torch.cuda.ExternalStream(_PER_THREAD_STREAM, device)):
        return found and agree() and torch.cuda.current_stream(device).stream_id != 0
