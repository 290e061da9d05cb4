"""Raw kernels: the user's own CUDA C++ text, launched as written."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import IO, Any

from gridstride._lazy_module import LazyModule, default_place
from gridstride._module import Function, Module
from gridstride._source.raw import RawSource, content_of
from gridstride.errors import CompileError
from gridstride.families.names import checked_name

Headers = Sequence[str] | Mapping[str, str]
#: Takes the place of ``<cuComplex.h>``.
_TRANSLATED = "gridstride/translated_complex.h"


class RawKernel(Function):
    """Compile CUDA C++ text and launch a kernel of it, on the target where the arguments live.

    Parameters
    ----------
    code : str
        CUDA C++ text.
    name : str
        The kernel: its name, or a template instance such as ``"f<float>"``.
    options : tuple of str
        Compiler options: ``-D -U -I -std -O* -G -lineinfo --fmad --use_fast_math --maxrregcount
        --extra-device-vectorization``, with one meaning on every target.
    headers : sequence of str, or mapping of str to str
        Names to include before the text, or header names with their texts.
    backend : {"nvrtc", "nvcc"}
        The compiler on CUDA; without effect elsewhere.
    translate_cucomplex : bool
        Let the types of ``<cuComplex.h>`` be ``complex<float>`` and ``complex<double>``, and its functions their
        operations, which may mix the precisions.
    jitify : bool
        Without effect: the standard headers work as they are.
    enable_cooperative_groups : bool
        Launch cooperatively, so that ``this_grid().sync()`` works.
    tier : str
        Run in this tier of the target (``"flat"`` or ``"fibers"`` on the CPU) and in no other; by
        default in the fastest that takes the kernel. `explain` says which it is.

    Raises
    ------
    TypeError, ValueError
        For bad parameters; compiling waits until the first launch or `compile`.

    Notes
    -----
    A call is ``kernel(grid, block, args=(), shared_mem=0, stream=None)``: blocks in the grid and threads in a
    block (an int or a tuple of up to three), one entry for each parameter (arrays for pointers, numbers,
    structured scalars, None for a null pointer), dynamic shared memory in bytes, and by default the current
    stream of the library that the arrays belong to. It returns None, and on a GPU before the kernel has run.

    Arguments are converted by the C++ types of the parameters. A wrong call is a TypeError (count, dtype, layout,
    place), a ValueError (grid, block) or an OverflowError (a number that the type cannot hold); nothing was
    launched then. CompileError, CUDAError, LaunchError and TargetUnavailable are failures of the text, the
    device, the kernel and the target.

    Examples
    --------
    >>> import gridstride as gs
    >>> import numpy as np
    >>> scale = gs.RawKernel(r'''
    ... extern "C" __global__ void scale(float* x, float factor, int n) {
    ...     int i = blockDim.x * blockIdx.x + threadIdx.x;
    ...     if (i < n) x[i] *= factor;
    ... }''', "scale")
    >>> x = np.arange(4, dtype=np.float32)
    >>> scale((1,), (32,), (x, 2.0, x.size))
    >>> x
    array([0., 2., 4., 6.], dtype=float32)
    """

    def __init__(
        self,
        code: str,
        name: str,
        options: Sequence[str] = (),
        headers: Headers = (),
        backend: str = "nvrtc",
        translate_cucomplex: bool = False,
        enable_cooperative_groups: bool = False,
        jitify: bool = False,
        *,
        tier: str = "",
    ) -> None:
        source = _source(
            content_of(code), checked_name(name), options, headers, backend, enable_cooperative_groups, tier=tier,
            translate_cucomplex=translate_cucomplex,
        )  # fmt: skip
        self._bind(LazyModule(source, (name,)), name)

    @property
    def code(self) -> str:
        """The CUDA C++ text."""
        return self._lazy.source.text

    def compile(self, log_stream: IO[str] | None = None) -> None:
        """Compile and load now, for the default target's current device.

        Parameters
        ----------
        log_stream : text stream, optional
            Receives the compiler's messages; without it only errors are shown, in the exception.
        """
        _compile(self._lazy, log_stream)
        self._prepare()


class RawModule:
    """Compile CUDA C++ text, or load object code, with several kernels and variables.

    Parameters
    ----------
    code : str or bytes, optional
        CUDA C++ text, also as bytes; or PTX, cubin or fatbin as bytes. Exactly one of `code`, `path`, `cubin` and
        `ptx` is given.
    path : str or path, optional
        A file with one of these.
    cubin, ptx : bytes, optional
    options, headers, backend, translate_cucomplex, enable_cooperative_groups, jitify, tier
        As for `RawKernel`.
    name_expressions : sequence of str, optional
        Template instances to compile in, for example ``["f<int>", "f<complex<float>>"]``, and
        variables with a leading ``&``.

    Raises
    ------
    TypeError, ValueError
        For bad parameters. Text is compiled by the first call that needs it.
    OSError
        Where the file cannot be read.

    Notes
    -----
    Object code runs on the target it was made for; the CPU target needs the source.

    Modules of the same text and options are loaded once a device, so they share their variables.
    """

    def __init__(
        self,
        code: str | bytes | None = None,
        *,
        path: str | os.PathLike[str] | None = None,
        cubin: bytes | None = None,
        ptx: bytes | str | None = None,
        options: Sequence[str] = (),
        backend: str = "nvrtc",
        name_expressions: Sequence[str] | None = None,
        translate_cucomplex: bool = False,
        enable_cooperative_groups: bool = False,
        jitify: bool = False,
        headers: Headers = (),
        tier: str = "",
    ) -> None:
        content, name, shown = _content(code, path, cubin, ptx)
        source = _source(
            content, name, options, headers, backend, enable_cooperative_groups, shown, tier, translate_cucomplex
        )  # fmt: skip
        self._lazy = LazyModule.of_source(source, _expressions(name_expressions))

    @property
    def code(self) -> str | bytes:
        """The text or object code."""
        return self._lazy.source.code

    def get_function(self, name: str) -> RawKernel:
        """Return a kernel by name or by a template instance in any spelling.

        Raises
        ------
        SymbolNotFound
            It lists the kernels there are.
        """
        kernel = RawKernel.__new__(RawKernel)
        kernel._bind(self._lazy, self._lazy.kernel_name(name))
        return kernel

    def get_global(self, name: str) -> Any:
        """Return a ``__device__`` or ``__constant__`` variable as a memory pointer with its true size.

        The pointer belongs to the default target's current device and can be used as an array of
        bytes, or as ``gs.ndarray(shape, dtype, memptr=pointer)``.

        Parameters
        ----------
        name : str
            With its namespaces: ``"physics::gravity"``.

        Raises
        ------
        SymbolNotFound
            A KeyError that lists the variables there are.
        """
        return self._lazy.global_pointer(name)

    def compile(self, log_stream: IO[str] | None = None) -> None:
        """Compile and load now, for the default target's current device.

        Parameters
        ----------
        log_stream : text stream, optional
            Receives the compiler's messages, also of a text that it refuses.

        Raises
        ------
        CompileError
            The compiler refused the text.
        """
        _compile(self._lazy, log_stream)

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore_module, (self._lazy.source, self._lazy.kernels, self._lazy.globals)


def compile_with_cache(
    source: str,
    options: Sequence[str] = (),
    arch: str | None = None,
    cache_dir: str | None = None,
    extra_source: str | None = None,
    backend: str = "nvrtc",
    *,
    enable_cooperative_groups: bool = False,
    name_expressions: Sequence[str] | None = None,
    log_stream: IO[str] | None = None,
    jitify: bool = False,
) -> Module:
    """Compile CUDA C++ text now, through the compile cache, and load it on the current device.

    Parameters
    ----------
    source : str
    options, backend, enable_cooperative_groups, jitify, name_expressions
        As for `RawModule`.
    arch : str, optional
        Accepted when it is the current device's; object code is made for the device it is loaded on.
    cache_dir, extra_source
        Only None: ``GRIDSTRIDE_CACHE_DIR`` chooses the place, and headers are files or mappings.
    log_stream : text stream, optional
        Receives the compiler's messages.

    Returns
    -------
    Module

    Raises
    ------
    CompileError
        The compiler refused the text.
    ValueError
        For another device's `arch`, and for what is only None.
    """
    if cache_dir is not None or extra_source is not None:
        raise ValueError(
            "cache_dir is set by GRIDSTRIDE_CACHE_DIR, and extra_source is not needed: use headers"
        )
    place = default_place()
    if arch is not None and arch.removeprefix("sm_") not in (own := place.target.arch(place.device)):
        raise ValueError(f"arch {arch!r} is not the current device's, which is {own}")
    lazy = LazyModule.of_source(
        _source(content_of(source), "module", options, (), backend, enable_cooperative_groups),
        _expressions(name_expressions),
    )
    _compile(lazy, log_stream)
    return Module._of(lazy)


# Pickles and tracebacks name what users import.
for _public in (RawKernel, RawModule, compile_with_cache):
    _public.__module__ = "gridstride"


def _source(
    code: str | bytes,
    name: str,
    options: Sequence[str],
    headers: Headers,
    backend: str,
    cooperative: bool,
    path: str = "",
    tier: str = "",
    translate_cucomplex: bool = False,
) -> RawSource:
    if not isinstance(code, str | bytes):
        raise TypeError(f"code must be CUDA C++ text or object code (bytes), got {type(code).__name__}")
    if isinstance(options, str):
        raise TypeError(
            f"options must be a tuple of strings, got the string {options!r}: write ({options!r},)"
        )
    if backend not in ("nvrtc", "nvcc"):
        raise ValueError(f"backend must be 'nvrtc' or 'nvcc', got {backend!r}")
    if isinstance(headers, str):
        raise TypeError(f"headers must be a sequence of names or a mapping, got the string {headers!r}")
    if not isinstance(tier, str):
        raise TypeError(f"tier must be the name of a tier (str), got {tier!r}")
    texts: tuple[tuple[str, str], ...] = ()
    includes: tuple[str, ...] = (_TRANSLATED,) if translate_cucomplex else ()
    if headers and isinstance(headers, Mapping):
        texts = tuple(headers.items())
    elif headers:
        includes += tuple(headers)
    return RawSource(code, name, tuple(options), texts, includes, bool(cooperative), backend, path, tier)


def _content(
    code: str | bytes | None,
    path: str | os.PathLike[str] | None,
    cubin: bytes | None,
    ptx: bytes | str | None,
) -> tuple[str | bytes, str, str]:
    given = [
        name
        for name, value in (("code", code), ("path", path), ("cubin", cubin), ("ptx", ptx))
        if value is not None
    ]
    if len(given) != 1:
        raise TypeError(f"give exactly one of code, path, cubin and ptx; got {', '.join(given) or 'none'}")
    if path is not None:
        module = Module.load_file(path)
        return module._lazy.source.code, module._lazy.source.name, os.fspath(path)
    if isinstance(ptx, str):
        ptx = ptx.encode()
    if code is not None:
        code = content_of(code)
    if isinstance(cubin, str):
        raise TypeError("cubin must be the object code (bytes), got a string: a file is given as path")
    content = next(each for each in (code, cubin, ptx) if each is not None)
    return content, "module", ""


def _expressions(name_expressions: Sequence[str] | None) -> tuple[str, ...]:
    if isinstance(name_expressions, str):
        raise TypeError(
            f"name_expressions must be a sequence of strings, got the string {name_expressions!r}"
        )
    return tuple(name_expressions or ())


def _compile(lazy: LazyModule, log_stream: IO[str] | None) -> None:
    try:
        log = lazy.load(default_place(), None).object_code.log
    except CompileError as error:
        if log_stream is not None:
            log_stream.write(error.log)
        raise
    if log_stream is not None:
        log_stream.write(log)


def _restore_module(source: RawSource, kernels: tuple[str, ...], globals_: tuple[str, ...]) -> RawModule:
    module = RawModule.__new__(RawModule)
    module._lazy = LazyModule(source, kernels, globals_)
    return module
