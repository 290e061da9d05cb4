"""Modules and the functions in them, as users hold them."""

from __future__ import annotations

import inspect
import os
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

from gridstride import _native, _pipeline, config
from gridstride._arguments.keywords import unknown_keyword
from gridstride._arguments.place import Place
from gridstride._compilation.functions import LoadedProgram
from gridstride._compilation.tiers import Explanation, explain
from gridstride._launch.configuration import launch_configuration
from gridstride._lazy_module import LazyModule, default_place
from gridstride._runtime.pointer import MemoryPointer
from gridstride._source.raw import RawSource, content_of, decoded
from gridstride.targets.base import Dim3, FunctionAttributes, LaunchConfig

if config.stream_order_check():
    from gridstride._runtime.order import follow_setting

    follow_setting()

_TEXT_SUFFIXES = frozenset({".cu", ".cuh", ".cpp", ".h", ".hpp"})
_SETTABLE = ("max_dynamic_shared_size_bytes", "preferred_shared_memory_carveout")


class Function(_native.Launcher):
    """Launch one kernel of a module, on the target where its arguments live.

    A call is ``function(grid, block, args=(), shared_mem=0, stream=None)``:

    - grid, block: int or tuple of up to three ints; blocks in the grid, threads in a block;
    - args: sequence with one entry for each parameter: arrays for pointers, numbers, structured
      scalars, None;
    - shared_mem: int, dynamic shared memory in bytes;
    - stream: by default the current stream of the library the arrays belong to.

    It raises TypeError, ValueError or OverflowError where the call is wrong (nothing was launched
    then), and CompileError, CUDAError, LaunchError or TargetUnavailable where the program, the
    device, the kernel or the target failed.

    Parameters
    ----------
    module : Module
    name : str
        Name, or name expression of a template instance in any spelling.

    Attributes
    ----------
    name : str
    attributes : mapping
        CUDA's function attributes (sizes in bytes); each is also an attribute of the function, and
        ``max_dynamic_shared_size_bytes`` and ``preferred_shared_memory_carveout`` can be set.
    """

    name: str
    prepared: dict[tuple[Place, Hashable], _pipeline.PreparedKernel]
    _lazy: LazyModule
    _cooperative: bool

    def __init__(self, module: Module, name: str) -> None:
        if not isinstance(getattr(module, "_lazy", None), LazyModule):
            raise TypeError(f"module must be a module with a program, got {module!r}")
        self._bind(module._lazy, module._lazy.kernel_name(name))

    def _bind(self, lazy: LazyModule, name: str) -> None:
        # Not one by one, which would ask `__setattr__` five times.
        vars(self).update(
            name=name,
            prepared={},
            _lazy=lazy,
            _cooperative=lazy.source.cooperative,
            __signature__=_CALL_SIGNATURE,
        )

    def prepare(
        self,
        grid: int | Sequence[int],
        block: int | Sequence[int],
        args: Sequence[Any] = (),
        shared_mem: int = 0,
        stream: Any = None,
    ) -> _native.PreparedLaunch:
        """Check a call as launching would, and return it as an object that launches when it is called.

        Launching again costs little more than the driver takes. The arguments' addresses and values
        and the stream are those of now; the arrays are kept alive.

        Parameters
        ----------
        grid, block, args, shared_mem, stream
            As in a call.

        Returns
        -------
        callable without arguments

        Raises
        ------
        TypeError, ValueError, OverflowError, CompileError, CUDAError, TargetUnavailable
            As a call does.
        """
        configuration = launch_configuration(self.name, grid, block, shared_mem, self._cooperative)
        launch = _pipeline.bind_call(self, configuration, _sequence(self.name, args), stream)
        return _native.PreparedLaunch(_pipeline.RepeatedLaunch(launch), launch.native_launch())

    def _launch(
        self,
        grid: int | Sequence[int],
        block: int | Sequence[int],
        args: Sequence[Any] = (),
        shared_mem: int = 0,
        stream: Any = None,
        **unknown: Any,
    ) -> _pipeline.BoundLaunch:
        """Launch through the pipeline: what a call does where it is no replay of an earlier one."""
        for keyword in unknown:
            raise unknown_keyword(self.name, keyword, [*_CALL_SIGNATURE.parameters])
        configuration = launch_configuration(self.name, grid, block, shared_mem, self._cooperative)
        return _pipeline.launch(self, configuration, _sequence(self.name, args), stream)

    def _foresee(
        self, device_type: int, device: int, grid: Dim3, block: Dim3, shared_mem: int
    ) -> _native.Entry | None:
        """Make the kernel ready for a first call, and return what replays it; None: the pipeline makes it."""
        configuration = LaunchConfig(grid, block, shared_mem, self._cooperative)
        return _pipeline.foresee(self, device_type, device, configuration)

    def load(self, place: Place, configuration: LaunchConfig | None) -> LoadedProgram:
        """Return the program that holds the kernel, loaded at a place."""
        return self._lazy.load(place, configuration)

    def compile(self) -> None:
        """Compile and load now, for the default target's current device."""
        self._prepare()

    def explain(self) -> Explanation:
        """Say in which tier the kernel runs on the default target, and what keeps it from a faster one.

        The kernel is compiled if it was not yet.

        Returns
        -------
        Explanation
            With `kernel`, `target`, `tier` and `obstacles`; printing it shows them.
        """
        place = default_place()
        return explain(place.target, self._lazy.load(place, None).function(self.name))

    @property
    def attributes(self) -> AttributeMapping:
        """The attributes on the default target's current device."""
        return AttributeMapping(self._prepare().attributes)

    def __getattr__(self, name: str) -> Any:
        if name in _ATTRIBUTE_NAMES:
            return self.attributes[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _SETTABLE:
            self._prepare().loaded.function.set_attribute(name, int(value))
            self.prepared.clear()
            self._forget()
        elif name in _ATTRIBUTE_NAMES:
            raise AttributeError(f"{name} cannot be set; {' and '.join(_SETTABLE)} can")
        else:
            object.__setattr__(self, name, value)

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (type(self), self._lazy.source, self._lazy.kernels, self._lazy.globals, self.name)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}>"

    def _prepare(self) -> _pipeline.PreparedKernel:
        return _pipeline.prepare(self, default_place(), None)


_LAUNCHING = inspect.signature(Function._launch.__get__(object()))
_CALL_SIGNATURE = _LAUNCHING.replace(
    parameters=[each for each in _LAUNCHING.parameters.values() if each.kind is not each.VAR_KEYWORD],
    return_annotation=None,
)


class Module:
    """Hold compiled kernels and variables, from source text or object code.

    ``Module()`` is empty; `load_file` and `load_from_string` make one that is not.
    """

    def __init__(self) -> None:
        self._lazy = LazyModule(RawSource("", "module"))

    @classmethod
    def load_file(cls, filename: str | os.PathLike[str]) -> Module:
        """Make a module from a file; it is compiled when a kernel or variable is first used.

        Parameters
        ----------
        filename : str or path
            CUDA C++ (``.cu``, ``.cuh``, ``.cpp``, ``.h``, ``.hpp``), PTX, cubin or fatbin.

        Raises
        ------
        OSError
            Where the file cannot be read.
        """
        path = os.fspath(filename)
        stem, suffix = os.path.splitext(os.path.basename(path))
        code: str | bytes
        with open(path, "rb") as file:
            code = file.read()
        code = decoded(code) if suffix in _TEXT_SUFFIXES else content_of(code)
        return cls._of(LazyModule.of_source(RawSource(code, stem, path=path)))

    @classmethod
    def load_from_string(cls, source: str | bytes) -> Module:
        """Make a module that is compiled when a kernel or variable is first used.

        Parameters
        ----------
        source : str or bytes
            CUDA C++ text, or PTX, cubin or fatbin (bytes).
        """
        return cls._of(LazyModule.of_source(RawSource(content_of(source), "module")))

    @classmethod
    def _of(cls, lazy: LazyModule) -> Module:
        module = cls()
        module._lazy = lazy
        return module

    def get_function(self, name: str) -> Function:
        """Return a kernel; SymbolNotFound lists what there is."""
        return Function(self, name)

    def get_global(self, name: str) -> MemoryPointer:
        """Return a variable in device memory, with its true size; SymbolNotFound lists what there is."""
        return self._lazy.global_pointer(name)

    def get_texref(self, name: str) -> Any:
        """Refuse: CUDA 12 removed texture references."""
        raise NotImplementedError(
            f"texture reference {name!r}: CUDA 12 removed texture references; read the array through a pointer"
        )


class AttributeMapping(Mapping[str, int]):
    """Show function attributes as a mapping."""

    def __init__(self, attributes: FunctionAttributes) -> None:
        self._attributes = attributes

    def __getitem__(self, name: str) -> int:
        if name not in _ATTRIBUTE_NAMES:
            raise KeyError(name)
        return int(getattr(self._attributes, name))

    def __iter__(self) -> Iterator[str]:
        return iter(_ATTRIBUTE_NAMES)

    def __len__(self) -> int:
        return len(_ATTRIBUTE_NAMES)

    def __repr__(self) -> str:
        return repr(dict(self))


_ATTRIBUTE_NAMES = FunctionAttributes._fields


def _sequence(kernel: str, args: Any) -> Sequence[Any]:
    if isinstance(args, tuple | list):
        return args
    raise TypeError(
        f"`{kernel}`: args must be a tuple with one entry for each parameter, got {type(args).__name__}; "
        f"write kernel(grid, block, (x,))"
    )


def _restore(
    cls: type[Function], source: RawSource, kernels: tuple[str, ...], globals_: tuple[str, ...], name: str
) -> Function:
    function = cls.__new__(cls)
    function._bind(LazyModule(source, kernels, globals_), name)
    return function
