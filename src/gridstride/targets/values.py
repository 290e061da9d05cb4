"""The values that cross the seam between what the user says and how it is executed.

They are named tuples: a frozen dataclass takes nine times as long to define, which every program
would pay for at its start.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from enum import Enum, IntFlag
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from gridstride.targets.options import CompileOptions

Dim3 = tuple[int, int, int]


class Limits(NamedTuple):
    """Say what a device allows."""

    name: str
    arch: str
    multiprocessors: int
    warp_size: int
    max_threads_per_block: int
    max_block: Dim3
    max_grid: Dim3
    shared_memory_per_block: int
    shared_memory_per_block_optin: int
    total_memory: int
    max_parameter_bytes: int = 4096
    compute_capability: str = ""
    #: Further attributes under CUDA's names without the prefix, for example "ClockRate".
    attributes: Mapping[str, int] = MappingProxyType({})
    #: Up to which alignment elements may lie anywhere; those of a larger one must lie at its multiples.
    largest_unaligned: int = 1


class Program(NamedTuple):
    """Name everything a compiler is given.

    Attributes
    ----------
    text : str
        The user's CUDA C++ text.
    name : str
        A readable name for messages and the cache.
    options : CompileOptions
    kernels : tuple of str
        Names and name expressions wanted as functions, in the user's spelling.
    globals : tuple of str
        Names and name expressions of variables wanted, in the user's spelling.
    constants : tuple of str
        Integral constant expressions over the text whose values the compiler is asked for.
    headers : tuple of (name, text)
        Headers that are given as text.
    includes : tuple of str
        Names of headers to include before the text (``<name>``), which keeps its own line numbers.
    path : str
        The file name that messages use for the text.
    specialization : Hashable
        What ``Target.specializes_on`` said.
    tier : str
        The tier that is asked for, one of the target's `tiers`; "" for the fastest that takes a kernel.
    linked : tuple of str
        Names of what the target has compiled apart for its loops, which may be linked instead of compiled again.
    is_signed : bool
        Whether the functions' signatures are wanted. To find them takes time, and whoever wrote the kernels has them.
    """

    text: str
    name: str
    options: CompileOptions
    kernels: tuple[str, ...] = ()
    globals: tuple[str, ...] = ()
    constants: tuple[str, ...] = ()
    headers: tuple[tuple[str, str], ...] = ()
    includes: tuple[str, ...] = ()
    path: str = ""
    specialization: Hashable = ()
    tier: str = ""
    linked: tuple[str, ...] = ()
    is_signed: bool = True

    def shown_name(self, kernel: str) -> str:
        """Return what users call a kernel: where the text around theirs is ours, it has the program's name."""
        return kernel if self.is_signed else self.name


class CType(NamedTuple):
    """Describe a C++ type as the compiler sees it (typedefs resolved, top-level const dropped).

    Attributes
    ----------
    kind : str
        "scalar", "vector" (built-in vectors such as ``float4``, also ``half2``), "struct",
        "pointer", "void" or "function" (only behind a pointer).
    name : str
        Canonical C++ spelling, for example ``unsigned int``, ``float4``, ``S``, ``float *``.
    size, alignment : int
        Bytes; 0 where unknown (void, functions, a struct behind a pointer).
    dtype : numpy.dtype or None
        Of a scalar, or of a vector's components. Complex numbers are scalars.
    components : int
        Of a vector (2 for ``half2``), else 1.
    const : bool
        Whether it is const-qualified (meaningful behind a pointer).
    pointee : CType or None
        Of a pointer.
    """

    kind: str
    name: str
    size: int
    alignment: int
    dtype: np.dtype[Any] | None = None
    components: int = 1
    const: bool = False
    pointee: CType | None = None


class Parameter(NamedTuple):
    """Describe one parameter of a kernel: its name in the source ("" if none), type and offset."""

    name: str
    type: CType
    offset: int


Signature = tuple[Parameter, ...]


class TierObstacle(NamedTuple):
    """Say what kept a kernel from a tier: a construct, with the file and line (0: none) where it stands."""

    tier: str
    reason: str
    path: str
    line: int


class FunctionRecord(NamedTuple):
    """Tie a name the user asked for to the object code.

    Attributes
    ----------
    lowered_name : str
    signature : Signature or None
        None where nothing is known.
    tier : str
        One of the target's `tiers`; "" where it has only one.
    obstacles : tuple of TierObstacle
        What kept it from faster tiers.
    """

    lowered_name: str
    signature: Signature | None
    tier: str = ""
    obstacles: tuple[TierObstacle, ...] = ()


class ObjectCode(NamedTuple):
    """Hold compiled bytes and what the compiler said about them.

    Attributes
    ----------
    format : str
        "cubin", "ptx", "fatbin" or "shared object".
    code : bytes
    functions : mapping of requested kernel name to FunctionRecord
    globals : mapping of requested variable name to lowered name
    constants : mapping of requested constant expression to value
    dependencies : tuple of (path, SHA-256 of the content) or None
        Every file read besides the text; None: they are not known and the entry is not cached.
    log : str
        Warnings.
    """

    format: str
    code: bytes
    functions: Mapping[str, FunctionRecord] = MappingProxyType({})
    globals: Mapping[str, str] = MappingProxyType({})
    constants: Mapping[str, int] = MappingProxyType({})
    dependencies: tuple[tuple[str, str], ...] | None = ()
    log: str = ""


class LaunchConfig(NamedTuple):
    """Say how a function is launched: grid and block (x, y, z), dynamic shared memory in bytes."""

    grid: Dim3
    block: Dim3
    shared_mem: int = 0
    cooperative: bool = False

    @property
    def threads(self) -> int:
        """Threads of one block."""
        return self.block[0] * self.block[1] * self.block[2]

    @property
    def blocks(self) -> int:
        """Blocks of the grid."""
        return self.grid[0] * self.grid[1] * self.grid[2]


class FunctionAttributes(NamedTuple):
    """Name what is known of a function; the fields are CUDA's (sizes in bytes).

    A target that has no such number gives -1.
    """

    max_threads_per_block: int
    shared_size_bytes: int
    const_size_bytes: int = -1
    local_size_bytes: int = -1
    num_regs: int = -1
    ptx_version: int = -1
    binary_version: int = -1
    cache_mode_ca: int = -1
    max_dynamic_shared_size_bytes: int = 49152
    preferred_shared_memory_carveout: int = -1


class Access(NamedTuple):
    """Say that a launch touches memory: who owns it, where, how far, and whether it may be written."""

    owner: object
    address: int
    extent: int
    written: bool


class EventFlags(IntFlag):
    """Say what is special about an event; the numbers are CUDA's."""

    BLOCKING = 1
    NO_TIMING = 2
    INTERPROCESS = 4


class CopyDirection(Enum):
    """Say between which memories a copy goes."""

    HOST_TO_DEVICE = 1
    DEVICE_TO_HOST = 2
    DEVICE_TO_DEVICE = 3
