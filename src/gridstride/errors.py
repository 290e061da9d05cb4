"""Exceptions of gridstride.

Misuse raises ``TypeError``, ``ValueError`` or ``OverflowError`` (the subclasses here add fields);
failures of the world (compiler, device, target) raise the tree below `GridstrideError`.
"""

from __future__ import annotations


class GridstrideError(Exception):
    """Root of the failures that are not the caller's misuse."""


class CompileError(GridstrideError):
    """Report a program that the target's compiler rejected.

    Attributes
    ----------
    name : str
        Kernel or module the program belongs to.
    log : str
        What the compiler printed, with the lines of the user's text.
    source : str
        The user's text.
    command : str
        The compiler call that can be repeated by hand, or the compiler's name.
    """

    def __init__(
        self, message: str, *, name: str = "", log: str = "", source: str = "", command: str = ""
    ) -> None:
        super().__init__(message)
        self.name = name
        self.log = log
        self.source = source
        self.command = command

    @property
    def numbered_source(self) -> str:
        """The user's text with the numbers of its lines, as messages count them."""
        lines = self.source.split("\n")
        width = len(str(len(lines)))
        return "\n".join(f"{number:{width}} | {line}" for number, line in enumerate(lines, 1))

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), str(self), self.__dict__)


class CUDAError(GridstrideError, RuntimeError):
    """Report a device call that failed.

    Attributes
    ----------
    name : str
        Name of the error, for example ``CUDA_ERROR_ILLEGAL_ADDRESS``.
    code : int
        The driver's number for it.
    call : str
        The driver function that returned it.
    """

    def __init__(self, message: str, *, name: str = "", code: int = 0, call: str = "") -> None:
        super().__init__(message)
        self.name = name
        self.code = code
        self.call = call

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), str(self), self.__dict__)


class OutOfMemoryError(CUDAError, MemoryError):
    """Report memory that a device or a pool's limit has no room for, after all that could be freed was.

    Attributes
    ----------
    size : int
        Bytes asked for.
    used, cached : int
        Bytes of the pool that are in use, and that it holds free.
    limit : int
        Of the pool, bytes; 0: none.
    """

    def __init__(
        self,
        message: str,
        *,
        size: int = 0,
        used: int = 0,
        cached: int = 0,
        limit: int = 0,
        name: str = "CUDA_ERROR_OUT_OF_MEMORY",
        code: int = 2,
        call: str = "malloc",
    ) -> None:
        super().__init__(message, name=name, code=code, call=call)
        self.size = size
        self.used = used
        self.cached = cached
        self.limit = limit


class LaunchError(CUDAError):
    """Report a kernel that failed while it ran: a fault, a divergent barrier, an assertion, a time-out.

    Attributes
    ----------
    kernel : str
        Name of the kernel.
    block, thread : tuple of int or None
        Where it happened (x, y, z).
    address : int or None
        The address of a memory fault.
    """

    def __init__(
        self,
        message: str,
        *,
        kernel: str = "",
        block: tuple[int, int, int] | None = None,
        thread: tuple[int, int, int] | None = None,
        address: int | None = None,
        name: str = "CUDA_ERROR_LAUNCH_FAILED",
        code: int = 719,
        call: str = "launch",
    ) -> None:
        super().__init__(message, name=name, code=code, call=call)
        self.kernel = kernel
        self.block = block
        self.thread = thread
        self.address = address


class StreamOrderError(GridstrideError, RuntimeError):
    """Report work that uses memory of another stream's work with nothing that orders the two.

    Attributes
    ----------
    first, second : str
        The work that was issued before and the one that was not: what it is, and the line it comes from.
    array : str
        The memory both use.
    """

    def __init__(self, message: str, *, first: str = "", second: str = "", array: str = "") -> None:
        super().__init__(message)
        self.first = first
        self.second = second
        self.array = array

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), str(self), self.__dict__)


class StreamOrderWarning(RuntimeWarning):
    """Warn of what `StreamOrderError` reports."""


class TargetUnavailable(GridstrideError, RuntimeError):
    """Report a target that cannot be used on this machine, with the reason and the remedy.

    Attributes
    ----------
    target, reason, remedy : str
    """

    def __init__(self, target: str, reason: str, remedy: str) -> None:
        super().__init__(f"target '{target}' is not available: {reason}. {remedy}")
        self.target = target
        self.reason = reason
        self.remedy = remedy

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.target, self.reason, self.remedy)


class SymbolNotFound(GridstrideError, KeyError):
    """Report a kernel or variable that a module does not have.

    Attributes
    ----------
    name : str
        What was asked for.
    available : tuple of str
        What the module has.
    """

    def __init__(self, message: str, *, name: str = "", available: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.name = name
        self.available = available

    def __str__(self) -> str:
        return str(self.args[0])

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), str(self), self.__dict__)


class _ArgumentError(Exception):
    def __init__(
        self,
        message: str,
        *,
        kernel: str = "",
        parameter: str = "",
        position: int = -1,
        expected: str = "",
        got: str = "",
    ) -> None:
        super().__init__(message)
        self.kernel = kernel
        self.parameter = parameter
        self.position = position
        self.expected = expected
        self.got = got

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), str(self), self.__dict__)


class ArgumentTypeError(_ArgumentError, TypeError):
    """Report an argument of the wrong kind, dtype, layout or place.

    Attributes
    ----------
    kernel, parameter, expected, got : str
    position : int
        Counted from 0.
    """


class ArgumentRangeError(_ArgumentError, OverflowError):
    """Report a number that the parameter's type cannot hold.

    Attributes
    ----------
    kernel, parameter, expected, got : str
    position : int
    """


def with_article(noun: str) -> str:
    """Return a noun behind its article: an int32 array, a uint8 array."""
    return f"an {noun}" if noun[:1].lower() in "aeio" else f"a {noun}"


def _rebuild(cls: type[Exception], message: str, fields: dict[str, object]) -> Exception:
    error = cls(message)
    error.__dict__.update(fields)
    return error
