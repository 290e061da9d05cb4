"""Modules that are compiled and loaded where they are first used."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

from gridstride import _forks, _pipeline
from gridstride._arguments.place import Place
from gridstride._compilation.functions import LoadedProgram, load_program
from gridstride._runtime.memory import UnownedMemory
from gridstride._runtime.pointer import MemoryPointer
from gridstride._source.raw import RawSource, checked, declared_globals, declared_kernels
from gridstride._syntax import normalize_name
from gridstride.errors import CompileError, SymbolNotFound
from gridstride.targets import registry
from gridstride.targets.base import LaunchConfig, ObjectCode, Program
from gridstride.targets.options import CompileOptions


class LazyModule:
    """Compile and load a source at every place where it is used, once a place.

    Attributes
    ----------
    source : RawSource
    kernels, globals : tuple of str
        The names and name expressions that are compiled in.
    """

    def __init__(
        self, source: RawSource, kernels: tuple[str, ...] = (), globals_: tuple[str, ...] = ()
    ) -> None:
        self.source = checked(source)
        self.kernels = kernels
        self.globals = globals_
        self._adopted: dict[tuple[str, int], LoadedProgram] = {}

    @classmethod
    def of_source(cls, source: RawSource, name_expressions: Sequence[str] = ()) -> LazyModule:
        """Make a module of everything the source declares and of the template instances asked for."""
        source = checked(source)
        if isinstance(source.code, bytes):
            if name_expressions:
                raise TypeError(f"{source.name}: name_expressions need source text, not object code")
            return cls(source)
        kernels = [kernel.name for kernel in declared_kernels(source) if not kernel.is_template]
        variables = list(declared_globals(source))
        for expression in name_expressions:
            wanted = normalize_name(expression)
            if expression.lstrip().startswith("&") or wanted in map(normalize_name, variables):
                variables.append(expression.strip().removeprefix("&").strip())
            else:
                kernels.append(expression)
        return cls(source, _distinct(kernels), _distinct(variables))

    def load(self, place: Place, configuration: LaunchConfig | None) -> LoadedProgram:
        """Return the source compiled and loaded at a place."""
        if isinstance(self.source.code, bytes):
            return self._load_adopted(place)
        program = self.source.program(place.target.name, self.kernels, self.globals)
        return load_program(place.target, place.device, _pipeline.specialize(program, place, configuration))

    def kernel_name(self, name: str) -> str:
        """Return the spelling under which a kernel is compiled in, adding a template instance where possible."""
        if isinstance(self.source.code, bytes):
            return self._find(name, self.load(default_place(), None).object_code.functions, "kernel")
        found = _spelled(name, self.kernels)
        if found is None:
            if not self._add_kernel(name):
                raise _not_found(self.source.name, "kernel", name, self.kernels)
            found = name
        return found

    def global_pointer(self, name: str) -> MemoryPointer:
        """Return a variable's memory on the default target's current device."""
        place = default_place()
        loaded = self.load(place, None)
        spelled = self._find(name, loaded.object_code.globals or {name: name}, "variable")
        try:
            address, size = loaded.module.global_variable(loaded.object_code.globals.get(spelled, spelled))
        except KeyError:
            raise _not_found(self.source.name, "variable", name, self.globals) from None
        memory = UnownedMemory(address, size, loaded, place.device, target=place.target)
        return MemoryPointer(memory, 0, size)

    def _find(self, name: str, names: Mapping[str, Any], what: str) -> str:
        found = _spelled(name, names)
        if found is None:
            raise _not_found(self.source.name, what, name, tuple(names))
        return found

    @property
    def _lock(self) -> threading.Lock:
        """The module's lock, which few modules ever need."""
        lock: threading.Lock = vars(self).setdefault("lock", _forks.Lock())
        return lock

    def _add_kernel(self, name: str) -> bool:
        """Compile an instance in that was not asked for at first; not where variables would be duplicated."""
        with self._lock:
            if self.globals:
                return False
            enlarged = LazyModule(self.source, (*self.kernels, name), self.globals)
            try:
                enlarged.load(default_place(), None)
            except CompileError:
                return False
            self.kernels = enlarged.kernels
            return True

    def _load_adopted(self, place: Place) -> LoadedProgram:
        assert isinstance(self.source.code, bytes)
        key = place.target.name, place.device
        with self._lock:
            if key not in self._adopted:
                object_code = place.target.adopt(self.source.code, self.source.name)
                self._adopted[key] = _loaded_binary(place, self.source.name, object_code)
            return self._adopted[key]


def default_place() -> Place:
    """Return the default target's current device."""
    target = registry.default()
    return Place(target, target.current_device())


def _loaded_binary(place: Place, name: str, object_code: ObjectCode) -> LoadedProgram:
    program = Program("", name, CompileOptions(), tuple(object_code.functions))
    module = place.target.load(object_code, place.device)
    return LoadedProgram(place.target, place.device, program, object_code, module)


def _spelled(name: str, names: Any) -> str | None:
    if name in names:
        return name
    wanted = normalize_name(name)
    return next((other for other in names if normalize_name(other) == wanted), None)


def _not_found(module: str, what: str, name: str, names: Sequence[str]) -> SymbolNotFound:
    available = ", ".join(names) or "none"
    hint = ""
    if "<" in name:
        hint = "; list template instances in name_expressions"
    return SymbolNotFound(
        f"{module}: there is no {what} {name!r}; available: {available}{hint}",
        name=name,
        available=tuple(names),
    )


def _distinct(names: Sequence[str]) -> tuple[str, ...]:
    return tuple({normalize_name(name): name for name in reversed(names)}.values())[::-1]
