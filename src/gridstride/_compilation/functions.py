"""Find a program's module in memory, its object code on disk, or compile it.

Cached twice: programs to loaded modules in memory, keys to object code on disk. One program is
compiled once per process however many threads ask for it.
"""

from __future__ import annotations

from typing import NamedTuple

from gridstride import _forks, _store, config
from gridstride._compilation.encoding import decode, encode
from gridstride._compilation.key import cache_key
from gridstride.errors import CompileError, CUDAError
from gridstride.targets.base import Function, Module, ObjectCode, Program, Signature, Target, TierObstacle

ModuleKey = tuple[str, int, Program]


class LoadedProgram(NamedTuple):
    """Hold a program's object code and the module it was loaded as."""

    target: Target
    device: int
    program: Program
    object_code: ObjectCode
    module: Module

    def function(self, name: str) -> LoadedFunction:
        """Return the function of a requested kernel; KeyError if it was not requested."""
        record = self.object_code.functions[name]
        function = self.module.function(record.lowered_name, self.program.shown_name(name))
        return LoadedFunction(name, function, record.signature, record.tier, record.obstacles)


class LoadedFunction(NamedTuple):
    """Hold a function that is ready to launch and what the compiler said of it (`FunctionRecord`)."""

    name: str
    function: Function
    signature: Signature | None
    tier: str = ""
    obstacles: tuple[TierObstacle, ...] = ()


def load_program(target: Target, device: int, program: Program) -> LoadedProgram:
    """Return a program loaded on a device: from memory, from disk, or compiled.

    Raises
    ------
    CompileError
        The compiler refused the text, or compilation is forbidden.
    """
    key = (target.name, device, program)
    found = _loaded.get(key)
    if found is None or found.target is not target:
        with _locks.of(key):
            found = _loaded.get(key)
            if found is None or found.target is not target:
                found = _loaded[key] = _load(target, device, program)
    return found


def forget_programs() -> None:
    """Forget the loaded programs; kernels that hold one go on working."""
    _loaded.clear()
    _objects.clear()
    _refused.clear()


def was_refused(target: Target, device: int, program: Program) -> bool:
    """Return whether it is remembered that the compiler refuses a program, perhaps since another run."""
    key = cache_key(target, target.arch(device), program)
    if key not in _refused and _store.read(key, target.name, program.name) == _REFUSAL:
        _refused.add(key)
    return key in _refused


def remember_refusal(target: Target, device: int, program: Program) -> None:
    """Remember that the compiler refuses a program for which there is another; not where it was not asked."""
    if config.compilation_forbidden():
        return
    key = cache_key(target, target.arch(device), program)
    _refused.add(key)
    _store.write(key, target.name, program.name, _REFUSAL)


def compile_program(target: Target, arch: str, program: Program) -> ObjectCode:
    """Return a program's object code from memory, from disk, or from the compiler."""
    key = cache_key(target, arch, program)
    with _locks.of(key):
        found = _objects.get(key)
        if found is None:
            found = _read(key, target, program)
            if found is None:
                found = _compile(key, target, arch, program)
            _objects[key] = found
        return found


_loaded: dict[ModuleKey, LoadedProgram] = {}
_objects: dict[str, ObjectCode] = {}
#: What an entry holds in place of object code.
_REFUSAL = b"refused"
_refused: set[str] = set()
_locks = _forks.Locks()


def _load(target: Target, device: int, program: Program) -> LoadedProgram:
    arch = target.arch(device)
    object_code = compile_program(target, arch, program)
    try:
        module = target.load(object_code, device)
    except CUDAError:
        # The entry passed its digest and yet the device refuses it: compile once more, then believe it.
        key = cache_key(target, arch, program)
        if _objects.pop(key, None) is None or config.compilation_forbidden():
            raise
        object_code = _objects[key] = _compile(key, target, arch, program)
        module = target.load(object_code, device)
    return LoadedProgram(target, device, program, object_code, module)


def _read(key: str, target: Target, program: Program) -> ObjectCode | None:
    content = _store.read(key, target.name, program.name)
    if content is None:
        return None
    try:
        object_code = decode(content)
    except (ValueError, TypeError, EOFError):
        return None
    for path, digest in object_code.dependencies or ():
        if _digest(path) != digest:
            return None
    return object_code


def _compile(key: str, target: Target, arch: str, program: Program) -> ObjectCode:
    if config.compilation_forbidden():
        raise CompileError(
            f"{program.name}: compilation is forbidden (GRIDSTRIDE_FORBID_COMPILATION) and the cache has no entry "
            f"for target '{target.name}', {arch}. Run once without it to fill the cache",
            name=program.name,
            source=program.text,
        )
    object_code = target.compile(program, arch)
    if object_code.dependencies is not None:
        _store.write(key, target.name, program.name, encode(object_code))
    return object_code


def _digest(path: str) -> str:
    import hashlib

    try:
        with open(path, "rb") as file:
            return hashlib.sha256(file.read()).hexdigest()
    except OSError:
        return ""
