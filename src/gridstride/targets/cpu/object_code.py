"""What the compiler wrote: the kernels, variables and constants of a library, and whether a device takes them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gridstride import _syntax
from gridstride.errors import CUDAError
from gridstride.targets.base import FunctionRecord, ObjectCode, TierObstacle
from gridstride.targets.cpu import abi, host, library, signatures
from gridstride.targets.cpu.account import Account
from gridstride.targets.cpu.shared import SharedLayout

#: The tiers of this target.
FLAT, FIBERS = "flat", "fibers"


def read(
    code: bytes,
    account: Account,
    texts: Iterable[str],
    flat_names: Mapping[str, str],
    obstacles: Mapping[str, TierObstacle],
) -> ObjectCode:
    """Return the object code of a library.

    Parameters
    ----------
    code : bytes
    account : Account
        Of the program that it was made of.
    texts : iterable of str
        What declarations are looked for in.
    flat_names : mapping of kernel to name of its flat form
    obstacles : mapping of kernel to TierObstacle
        What kept the others from a flat form.
    """
    try:
        kernel_library = library.KernelLibrary(code, account.program.name)
    except CUDAError as error:
        raise account.error(f"what the compiler wrote is no kernel library: {error}") from error
    try:
        _check_kernels(account)
        _check_shared(account, kernel_library)
        functions = {}
        for name, kernel in kernel_library.kernels().items():
            signature = signatures.signature(kernel, _parameter_names(name, kernel, texts))
            tier = FLAT if name in flat_names else FIBERS
            kept = (obstacles[name],) if name in obstacles else ()
            functions[name] = FunctionRecord(name, signature, tier, kept)
        globals_ = {name: name for name in kernel_library.globals()}
        constants = kernel_library.constants()
    finally:
        kernel_library.close()
    return ObjectCode("shared object", code, functions, globals_, constants, log=account.log)


def _parameter_names(name: str, kernel: abi.Kernel, texts: Iterable[str]) -> list[str]:
    """Return the names of a kernel's parameters as far as its declaration is found."""
    wanted = (_syntax.normalize_name(name), _syntax.base_name(name))
    for text in texts:
        for function in _syntax.functions(text):
            if function.name in wanted and len(function.parameters) == kernel.parameter_count:
                return [parameter.name for parameter in function.parameters]
    return []


def _check_kernels(account: Account) -> None:
    """Refuse functions that were asked for as kernels and are none, which the compiler cannot tell apart."""
    program = account.program
    functions = _syntax.functions(program.text) if program.kernels else ()
    others = {function.name for function in functions if function.is_ordinary}
    others -= {function.name for function in functions if not function.is_ordinary}
    for name in program.kernels:
        if _syntax.base_name(name) in others:
            raise account.no_kernel(name)


def _check_shared(account: Account, kernel_library: library.KernelLibrary) -> None:
    """Refuse kernels with more static shared memory than a device gives them."""
    layout = SharedLayout()
    layout.place(kernel_library.shared_slots())
    for name in account.program.kernels:
        size = layout.bytes_of(name) - layout.common
        if size > host.SHARED_MEMORY_PER_BLOCK:
            raise account.error(
                f"kernel {name!r} declares {size} bytes of __shared__ memory, and "
                f"{host.SHARED_MEMORY_PER_BLOCK} is the most; declare it extern and pass shared_mem"
            )
