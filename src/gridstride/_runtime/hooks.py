"""Hooks: objects that watch allocations inside a ``with`` block."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from inspect import Parameter, signature
from types import TracebackType
from typing import Any, NamedTuple

from gridstride import _forks, _native, arrays

#: How many hooks are entered, in all threads: with none, a pool looks no further.
entered = 0

_EVENTS = (
    "alloc_preprocess",
    "alloc_postprocess",
    "malloc_preprocess",
    "malloc_postprocess",
    "free_preprocess",
    "free_postprocess",
)
_ABOUT_MEMORY = ("alloc_postprocess", "free_preprocess", "free_postprocess")
#: What a hook that asks for the memory itself is told, and when: of each request, not of each growth.
_WHEN_ABOUT_MEMORY = {
    "malloc_preprocess": "alloc_preprocess",
    "malloc_postprocess": "alloc_postprocess",
    "free_preprocess": "free_preprocess",
    "free_postprocess": "free_postprocess",
}


class MemoryHook:
    """Watch the memory that the calling thread takes from pools and gives back, inside a ``with`` block.

    Derive from it and define the methods you need; ``super().__init__()`` need not be called. Two ways
    of writing them are understood.

    Methods that take keywords are CuPy's: ``alloc_preprocess`` and ``alloc_postprocess`` are called
    when a pool takes memory from the device, ``malloc_*`` when memory is taken from a pool, ``free_*``
    when it goes back there. The keywords are ``device_id``, ``mem_size`` (bytes, rounded up),
    ``mem_ptr``, ``size`` (bytes, as asked for) and ``pmem_id``, as far as they are known by then.

    Where ``alloc_postprocess``, ``free_preprocess`` or ``free_postprocess`` takes one argument, it is
    the memory, with ``ptr``, ``size`` (bytes, rounded up) and ``device_id``; then ``alloc_*`` and
    ``free_*`` are called for each piece of memory that is handed out and given back, so that the two
    balance.

    What a method raises before memory is handed out reaches the caller, who gets none; the pool's
    books stay right in any case.

    Examples
    --------
    >>> import gridstride as gs
    >>> class Tracker(gs.cuda.MemoryHook):
    ...     def __init__(self):
    ...         self.sizes = []
    ...     def alloc_postprocess(self, mem):
    ...         self.sizes.append(mem.size)
    >>> tracker = Tracker()
    >>> with tracker:
    ...     memory = gs.cuda.MemoryPool().malloc(1000)
    >>> tracker.sizes
    [1024]
    """

    name = "MemoryHook"

    def __enter__(self) -> MemoryHook:
        if any(listener.hook is self for listener in _threads.listeners):
            raise RuntimeError(f"the hook {self.name!r} is entered already in this thread")
        _enter(_Listener(self, _receivers(self), _enter_cupy(self)))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        listener = next((each for each in reversed(_threads.listeners) if each.hook is self), None)
        if listener is None:
            raise RuntimeError(f"the hook {self.name!r} is not entered in this thread")
        _leave(listener)

    def alloc_preprocess(self, **kwargs: Any) -> None:
        """Look at what is about to be taken from the device: ``device_id``, ``mem_size``."""

    def alloc_postprocess(self, mem: Any = None, **kwargs: Any) -> None:
        """Look at what was taken from the device: also ``mem_ptr``."""

    def malloc_preprocess(self, **kwargs: Any) -> None:
        """Look at a request to a pool: ``device_id``, ``size``, ``mem_size``."""

    def malloc_postprocess(self, **kwargs: Any) -> None:
        """Look at what a pool handed out: also ``mem_ptr``, ``pmem_id``."""

    def free_preprocess(self, mem: Any = None, **kwargs: Any) -> None:
        """Look at what is about to go back: ``device_id``, ``mem_size``, ``mem_ptr``, ``pmem_id``."""

    def free_postprocess(self, mem: Any = None, **kwargs: Any) -> None:
        """Look at what went back: ``device_id``, ``mem_size``, ``mem_ptr``, ``pmem_id``."""


class Piece(NamedTuple):
    """Describe memory to a hook.

    Attributes
    ----------
    ptr : int
        Address.
    size : int
        Bytes, rounded up.
    device_id : int
    pmem_id : int
        Tells pieces apart that are in use at the same time.
    requested : int
        Bytes, as asked for.
    """

    ptr: int
    size: int
    device_id: int
    pmem_id: int = 0
    requested: int = 0


def tell(event: str, piece: Piece) -> None:
    """Call a method of all hooks of the calling thread, in the order in which they were entered."""
    for listener in tuple(_threads.listeners):
        receiver = listener.receivers.get(event)
        if receiver is not None:
            receiver(event, piece)


def tell_all(event: str, piece: Piece) -> None:
    """Call a method of all hooks as `tell`, each of them even where others raise; then raise the first failure."""
    failure = None
    for listener in tuple(_threads.listeners):
        receiver = listener.receivers.get(event)
        try:
            if receiver is not None:
                receiver(event, piece)
        except BaseException as error:
            failure = failure or error
    try:
        if failure is not None:
            raise failure
    finally:
        del failure  # else it would hold itself by its traceback, and the memory with it


_Receiver = Callable[[str, Piece], None]


class _Listener(NamedTuple):
    """Hold a hook that was entered, and how it is told of each event it knows."""

    hook: MemoryHook
    receivers: dict[str, _Receiver]
    leave_cupy: Callable[[], None]


class _Threads(threading.local):
    def __init__(self) -> None:
        self.listeners: list[_Listener] = []


_threads = _Threads()
_lock = _forks.Lock()


def _enter(listener: _Listener) -> None:
    global entered
    _threads.listeners.append(listener)
    with _lock:
        entered = _native.hooks_entered(+1)


def _leave(listener: _Listener) -> None:
    global entered
    _threads.listeners.remove(listener)
    with _lock:
        entered = _native.hooks_entered(-1)
    listener.leave_cupy()


def _receivers(hook: MemoryHook) -> dict[str, _Receiver]:
    methods = {event: getattr(hook, event) for event in _EVENTS if _is_overridden(hook, event)}
    if not any(event in methods and _takes_memory(methods[event]) for event in _ABOUT_MEMORY):
        return {event: _with_keywords(method) for event, method in methods.items()}
    receivers = {}
    for event, own_event in _WHEN_ABOUT_MEMORY.items():
        method = methods.get(own_event)
        if method is not None:
            receivers[event] = _with_memory(method) if _takes_memory(method) else _with_keywords(method)
    return receivers


def _is_overridden(hook: MemoryHook, event: str) -> bool:
    return event in vars(hook) or getattr(type(hook), event) is not getattr(MemoryHook, event)


def _takes_memory(method: Callable[..., None]) -> bool:
    return any(_is_memory(parameter) for parameter in signature(method).parameters.values())


def _is_memory(parameter: Parameter) -> bool:
    if parameter.kind not in (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD):
        return False
    is_needed = parameter.default is Parameter.empty and parameter.name not in _VALUES
    return is_needed or parameter.name == "mem"


def _with_memory(method: Callable[..., None]) -> _Receiver:
    return lambda event, piece: method(piece)


def _with_keywords(method: Callable[..., None]) -> _Receiver:
    def receive(event: str, piece: Piece) -> None:
        method(**{name: _VALUES[name](piece) for name in _KEYWORDS[event]})

    return receive


_KEYWORDS = {
    "alloc_preprocess": ("device_id", "mem_size"),
    "alloc_postprocess": ("device_id", "mem_size", "mem_ptr"),
    "malloc_preprocess": ("device_id", "size", "mem_size"),
    "malloc_postprocess": ("device_id", "size", "mem_size", "mem_ptr", "pmem_id"),
    "free_preprocess": ("device_id", "mem_size", "mem_ptr", "pmem_id"),
    "free_postprocess": ("device_id", "mem_size", "mem_ptr", "pmem_id"),
}
_VALUES: dict[str, Callable[[Piece], int]] = {
    "device_id": lambda piece: piece.device_id,
    "mem_size": lambda piece: piece.size,
    "mem_ptr": lambda piece: piece.ptr,
    "pmem_id": lambda piece: piece.pmem_id,
    "size": lambda piece: piece.requested,
}


def _enter_cupy(hook: MemoryHook) -> Callable[[], None]:
    """Let CuPy's own pools tell the hook too where CuPy is loaded; calling the result ends it."""
    memory_hook = getattr(getattr(sys.modules.get("cupy"), "cuda", None), "MemoryHook", None)
    if memory_hook is None or arrays.adapter_of("cupy") is None:
        return _nothing
    forwarder = _cupy_forwarder(memory_hook, hook)
    forwarder.__enter__()
    return lambda: forwarder.__exit__(None, None, None)


def _cupy_forwarder(memory_hook: type, hook: MemoryHook) -> Any:
    receivers = _receivers(hook)

    def forward(event: str) -> Callable[..., None]:
        def method(self: object, **keywords: int) -> None:
            receiver = receivers.get(event)
            if receiver is not None:
                receiver(event, _piece_of_cupy(keywords))

        return method

    name = f"gridstride {hook.name} {id(hook):#x}"
    methods = {event: forward(event) for event in _EVENTS}
    return type("GridstrideHook", (memory_hook,), {"name": name, **methods})()


def _piece_of_cupy(keywords: dict[str, int]) -> Piece:
    return Piece(
        keywords.get("mem_ptr", 0),
        keywords["mem_size"],
        keywords["device_id"],
        keywords.get("pmem_id", 0),
        keywords.get("size", 0),
    )


def _nothing() -> None:
    pass
