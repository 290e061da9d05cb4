"""NVIDIA's run-time compiler, through ctypes.

The library is found without being opened, because a warm compile cache never needs it.
"""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Callable, Iterator, Sequence
from ctypes import POINTER, byref, c_char_p, c_int, c_size_t, c_void_p
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from gridstride import _forks
from gridstride.errors import CUDAError
from gridstride.targets import toolkit

#: Major versions this module knows, newest first.
KNOWN_VERSIONS = (13, 12)
_LIBRARY = "libnvrtc.so"
_COMPILATION_FAILED = 6

_PROGRAM = c_void_p
_FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "nvrtcVersion": (POINTER(c_int), POINTER(c_int)),
    "nvrtcGetNumSupportedArchs": (POINTER(c_int),),
    "nvrtcGetSupportedArchs": (POINTER(c_int),),
    "nvrtcCreateProgram": (
        POINTER(_PROGRAM),
        c_char_p,
        c_char_p,
        c_int,
        POINTER(c_char_p),
        POINTER(c_char_p),
    ),
    "nvrtcDestroyProgram": (POINTER(_PROGRAM),),
    "nvrtcAddNameExpression": (_PROGRAM, c_char_p),
    "nvrtcCompileProgram": (_PROGRAM, c_int, POINTER(c_char_p)),
    "nvrtcGetLoweredName": (_PROGRAM, c_char_p, POINTER(c_char_p)),
    "nvrtcGetProgramLogSize": (_PROGRAM, POINTER(c_size_t)),
    "nvrtcGetProgramLog": (_PROGRAM, c_char_p),
    "nvrtcGetCUBINSize": (_PROGRAM, POINTER(c_size_t)),
    "nvrtcGetCUBIN": (_PROGRAM, c_char_p),
    "nvrtcGetPTXSize": (_PROGRAM, POINTER(c_size_t)),
    "nvrtcGetPTX": (_PROGRAM, c_char_p),
}


class Compilation(NamedTuple):
    """Hold what a compilation gave; `code` is None where the text was refused."""

    code: bytes | None
    lowered_names: dict[str, str]
    log: str


class Nvrtc:
    """Compile texts with the library of one file.

    Parameters
    ----------
    path : pathlib.Path
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @cached_property
    def identity(self) -> str:
        """What tells this compiler from another one, without opening it."""
        status = os.stat(self.path)
        return f"{os.path.realpath(self.path)} {status.st_size} {status.st_mtime_ns}"

    @property
    def version(self) -> tuple[int, int]:
        """Major and minor version."""
        major, minor = c_int(), c_int()
        self._call("nvrtcVersion", byref(major), byref(minor))
        return major.value, minor.value

    @cached_property
    def architectures(self) -> tuple[int, ...]:
        """The compute capabilities that are known, ascending, as in ``90`` for 9.0."""
        count = c_int()
        self._call("nvrtcGetNumSupportedArchs", byref(count))
        numbers = (c_int * count.value)()
        self._call("nvrtcGetSupportedArchs", numbers)
        return tuple(sorted(numbers))

    def compile(
        self, text: str, name: str, options: Sequence[str], *, expressions: Sequence[str] = (),
        headers: Sequence[tuple[str, str]] = (), form: str = "cubin",
    ) -> Compilation:  # fmt: skip
        """Compile a text; safe from many threads, which wait for each other.

        Parameters
        ----------
        text, name : str
            What to compile and the file name for messages.
        options : sequence of str
        expressions : sequence of str
            Name expressions whose lowered names are wanted.
        headers : sequence of (name, text)
        form : str
            "cubin" or "ptx".

        Raises
        ------
        CUDAError
            For anything but a text that is refused.
        """
        names = _strings([name for name, _ in headers])
        texts = _strings([text for _, text in headers])
        program = _PROGRAM()
        with _lock:
            self._call(
                "nvrtcCreateProgram", byref(program), text.encode(), name.encode(), len(headers), texts, names
            )
            try:
                for expression in dict.fromkeys(expressions):
                    self._call("nvrtcAddNameExpression", program, expression.encode())
                accepted = self._compile(program, options)
                log = self._bytes(program, "ProgramLog").rstrip(b"\0").decode("utf-8", "replace").strip()
                if not accepted:
                    return Compilation(None, {}, log)
                lowered = {expression: self._lowered_name(program, expression) for expression in expressions}
                return Compilation(self._bytes(program, form.upper()), lowered, log)
            finally:
                self._call("nvrtcDestroyProgram", byref(program))

    def _compile(self, program: ctypes.c_void_p, options: Sequence[str]) -> bool:
        code = self._functions("nvrtcCompileProgram")(program, len(options), _strings(options))
        if code not in (0, _COMPILATION_FAILED):
            log = self._bytes(program, "ProgramLog").rstrip(b"\0").decode("utf-8", "replace").strip()
            raise self._error(code, "nvrtcCompileProgram", log)
        return code == 0

    def _lowered_name(self, program: ctypes.c_void_p, expression: str) -> str:
        name = c_char_p()
        self._call("nvrtcGetLoweredName", program, expression.encode(), byref(name))
        return (name.value or b"").decode()

    def _bytes(self, program: ctypes.c_void_p, what: str) -> bytes:
        size = c_size_t()
        self._call(f"nvrtcGet{what}Size", program, byref(size))
        buffer = ctypes.create_string_buffer(size.value)
        self._call(f"nvrtcGet{what}", program, buffer)
        return buffer.raw

    def _call(self, name: str, *arguments: object) -> None:
        code = self._functions(name)(*arguments)
        if code:
            raise self._error(code, name, "")

    def _error(self, code: int, call: str, log: str) -> CUDAError:
        describe = self._library.nvrtcGetErrorString
        describe.restype = c_char_p
        name = describe(code).decode()
        return CUDAError(f"{name} ({call}){': ' + log if log else ''}", name=name, code=code, call=call)

    def _functions(self, name: str) -> Callable[..., int]:
        function = getattr(self._library, name)
        function.argtypes = _FUNCTIONS[name]
        return function  # type: ignore[no-any-return]

    @cached_property
    def _library(self) -> ctypes.CDLL:
        # In wheels NVRTC does not find its companion, unless that is loaded already.
        for companion in self.path.parent.glob("libnvrtc-builtins.so*"):
            if ".alt." not in companion.name:
                ctypes.CDLL(str(companion))
        return ctypes.CDLL(str(self.path))


#: Held while NVRTC works. A fork waits for it, because a child would find the library in the middle of its work.
_lock = _forks.awaited_lock()


def find(newest: int = KNOWN_VERSIONS[0]) -> Nvrtc | None:
    """Return NVRTC with a major version of at most `newest`, or None.

    One that the process has loaded already comes first, so that there are never two.
    """
    majors = [major for major in KNOWN_VERSIONS if major <= newest]
    return next((Nvrtc(path) for path in _candidates(majors) if path is not None), None)


def _candidates(majors: list[int]) -> Iterator[Path | None]:
    for major in majors:
        yield _loaded(major)
    for file in toolkit.library_files(_LIBRARY):
        if _major(file) in majors:
            yield file
    for major in majors:
        yield _installed(major)


def _loaded(major: int) -> Path | None:
    return _path_of(f"{_LIBRARY}.{major}", os.RTLD_NOLOAD | os.RTLD_NOW)


def _installed(major: int) -> Path | None:
    """Return the file that the dynamic loader finds by itself."""
    return _path_of(f"{_LIBRARY}.{major}", os.RTLD_NOW)


class _SymbolPlace(ctypes.Structure):
    _fields_ = (("file", c_char_p), ("base", c_void_p), ("name", c_char_p), ("address", c_void_p))


def _path_of(name: str, mode: int) -> Path | None:
    try:
        library = ctypes.CDLL(name, mode=mode)
    except OSError:
        return None
    place = _SymbolPlace()
    address = ctypes.cast(library.nvrtcVersion, c_void_p)
    if not ctypes.CDLL(None).dladdr(address, byref(place)) or not place.file:
        return None
    return Path(os.fsdecode(place.file))


def _major(file: Path) -> int:
    match = re.search(r"\.so\.(\d+)", file.name)
    return int(match[1]) if match else 0


def _strings(texts: Sequence[str]) -> ctypes.Array[c_char_p]:
    return (c_char_p * len(texts))(*[text.encode() for text in texts])
