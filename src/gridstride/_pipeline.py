"""THE MAP: the road of a call, from what the user said to the launch.

    view      arrays          look at each argument: address, dtype, shape, strides, device
    place     _arguments      the target and device that the arguments decide
    compile   _compilation    find the function in the caches, or compile and load it
    bind      _arguments      convert each argument by the C++ signature the compiler reported
    check     _launch         the configuration against limits and attributes
    launch    targets         run on the stream

`PreparedKernel` is what the middle steps yield for one place; it is found again under a cheap key.
The compiled fast path replays view, check, bind and launch for calls that look like earlier ones;
for everything else it comes here. A first call that it can make as soon as the kernel is ready asks
for no more than that (`foresee`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple, Protocol

from gridstride import _native, arrays
from gridstride._arguments.parameters import ParameterInfo
from gridstride._arguments.place import Place, place_of
from gridstride._arguments.raw import BoundCall, bind_raw
from gridstride._arguments.structs import StructLayout
from gridstride._compilation.functions import LoadedFunction, LoadedProgram, compile_program
from gridstride._compilation.tiers import check_tier, chosen_tier
from gridstride._launch.configuration import check_configuration
from gridstride._launch.native_entry import NO_ARRAYS, native_entry
from gridstride._runtime import tracking
from gridstride._runtime.current import on_device
from gridstride._runtime.launch_stream import resolve_stream
from gridstride._source.raw import layout_constants, layout_program
from gridstride.arrays.view import ArrayView
from gridstride.errors import ArgumentTypeError, CompileError
from gridstride.targets import registry
from gridstride.targets.base import FunctionAttributes, LaunchConfig, Limits, Program


class Launchable(Protocol):
    """Name what the pipeline needs of a kernel: its name, its program, and room for what it prepared."""

    name: str
    prepared: dict[tuple[Place, Hashable], PreparedKernel]

    def load(self, place: Place, configuration: LaunchConfig | None) -> LoadedProgram:
        """Return the program that holds the kernel, loaded at a place for a configuration."""
        ...


class PreparedKernel(NamedTuple):
    """Hold a kernel's function at one place with everything a launch is checked against."""

    name: str
    place: Place
    program: Program
    loaded: LoadedFunction
    attributes: FunctionAttributes
    limits: Limits
    #: What the compiler said of structs, by what was asked.
    layouts: dict[tuple[int, tuple[str, ...], tuple[str, ...]], StructLayout]

    def bind(self, arguments: Sequence[Any], views: Sequence[ArrayView | None]) -> BoundCall:
        """Convert the arguments by the function's signature."""
        if self.loaded.signature is None:
            raise TypeError(
                f"`{self.name}`: nothing is known of its parameters, so no argument can be checked"
            )
        return bind_raw(self.name, self.loaded.signature, arguments, views, self._layout)

    def native_entry(self, device_type: int, configuration: LaunchConfig) -> _native.Entry | None:
        """Return what the compiled fast path needs to replay launches whose first array is of a device type."""
        return native_entry(
            self.place, device_type, self.loaded.function, self.loaded.signature,
            self.limits, self.attributes, configuration,
        )  # fmt: skip

    def _layout(self, position: int, members: tuple[str, ...], otherwise: tuple[str, ...]) -> StructLayout:
        key = position, members, otherwise
        if key not in self.layouts:
            try:
                self.layouts[key] = self._ask_for_layout(position, members)
            except CompileError:
                if otherwise == members:
                    raise
                self.layouts[key] = self._ask_for_layout(position, otherwise)
        return self.layouts[key]

    def _ask_for_layout(self, position: int, members: tuple[str, ...]) -> StructLayout:
        (size, alignment), offsets = layout_constants(members)
        program = layout_program(self.program, self.loaded.name, position, members)
        constants = compile_program(
            self.place.target, self.place.target.arch(self.place.device), program
        ).constants
        return StructLayout(
            constants[size],
            constants[alignment],
            {name: (constants[offset], constants[extent]) for name, (offset, extent) in offsets.items()},
        )


class BoundLaunch(NamedTuple):
    """Hold everything of a launch but the launch itself.

    Attributes
    ----------
    prepared : PreparedKernel
    configuration : LaunchConfig
    bound : BoundCall
        The argument bytes; its accesses keep the arrays alive.
    stream : int
        Its raw handle.
    device_type : int
        DLPack's number for the device of the first array; 0 without arrays.
    """

    prepared: PreparedKernel
    configuration: LaunchConfig
    bound: BoundCall
    stream: int
    device_type: int

    def run(self) -> None:
        """Launch."""
        place, function = self.prepared.place, self.prepared.loaded.function
        with on_device(place.target, place.device):
            tracking.launch(
                place.target, place.device, self.prepared.name, function,
                self.configuration, self.bound.packed, self.stream, self.bound.accesses,
            )  # fmt: skip

    def native_entry(self) -> _native.Entry | None:
        """Return what the compiled fast path needs to replay such launches."""
        return self.prepared.native_entry(self.device_type, self.configuration)

    def native_launch(self) -> _native.Launch | None:
        """Return what the compiled fast path needs to repeat this launch."""
        entry = self.native_entry()
        if entry is None or (self.stream and self.device_type != arrays.CUDA):
            return None
        return _native.Launch(entry.routine, entry.context, entry.function, *self.replayed_form()[1:])

    def replayed_form(self) -> tuple[Any, ...]:
        """Return what the compiled fast path must come to for the same call."""
        how = self.configuration
        flags = int(how.cooperative)
        return (
            self.prepared.place.target, how.grid, how.block, how.shared_mem, flags, self.bound.packed, self.stream
        )  # fmt: skip


class RepeatedLaunch:
    """Launch the same again at every call; what it touches lives until the last one is done."""

    __slots__ = ("_launch",)

    def __init__(self, launch: BoundLaunch) -> None:
        self._launch = launch

    def __call__(self) -> None:
        self._launch.run()

    def __del__(self, finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        if not finalizing():
            place = self._launch.prepared.place
            tracking.keep_if_needed(
                place.target, place.device, self._launch.stream, self._launch.bound.accesses
            )


def launch(
    kernel: Launchable, configuration: LaunchConfig, arguments: Sequence[Any], stream: Any
) -> BoundLaunch:
    """Run a kernel where its arguments live; return the launch.

    Raises
    ------
    TypeError, ValueError, OverflowError
        The call is wrong; nothing was launched.
    CompileError, CUDAError, LaunchError, TargetUnavailable
        The world failed.
    """
    launch = bind_call(kernel, configuration, arguments, stream)
    launch.run()
    return launch


def bind_call(
    kernel: Launchable, configuration: LaunchConfig, arguments: Sequence[Any], stream: Any
) -> BoundLaunch:
    """Go the road of a call up to the launch; what it raises is what `launch` raises."""
    views = view_arguments(kernel.name, arguments)
    place = place_of(kernel.name, views)
    with on_device(place.target, place.device):
        handle = resolve_stream(views, stream, place.target, place.device)
        prepared = prepare(kernel, place, configuration)
        bound = prepared.bind(arguments, views)
        check_configuration(kernel.name, configuration, prepared.limits, prepared.attributes)
    device_type = next((view.device_type for view in views if view is not None), NO_ARRAYS)
    return BoundLaunch(prepared, configuration, bound, handle, device_type)


def foresee(
    kernel: Launchable, device_type: int, device: int, configuration: LaunchConfig
) -> _native.Entry | None:
    """Return what replays calls whose first array is on a device, before there was one to learn from.

    The kernel is ready afterwards. None: such calls go the road of the pipeline, at least this time.
    """
    place = Place(registry.serving(device_type), device)
    if place.target.current_device() != device:
        return None
    return prepare(kernel, place, configuration).native_entry(device_type, configuration)


def view_arguments(
    kernel: str, arguments: Sequence[Any], parameters: Sequence[ParameterInfo] = ()
) -> tuple[ArrayView | None, ...]:
    """Return the view of each argument that is an array, None for the others.

    Errors speak of `parameters` where these are known.
    """
    views = []
    for position, argument in enumerate(arguments):
        try:
            views.append(arrays.view(argument))
        except (ArgumentTypeError, ValueError) as error:  # also memory that was given back
            shown = ""
            if position < len(parameters):
                shown = f", parameter `{parameters[position].name}` (`{parameters[position].ctype}`)"
            error.args = (f"`{kernel}`: argument {position}{shown}: {error}",)
            if isinstance(error, ArgumentTypeError):
                error.kernel, error.position = kernel, position
                error.parameter = parameters[position].name if shown else ""
            raise
    return tuple(views)


def prepare(kernel: Launchable, place: Place, configuration: LaunchConfig | None) -> PreparedKernel:
    """Return a kernel's function at a place: prepared before, found in the caches, or compiled and loaded."""
    key = place, place.target.specializes_on(configuration) if configuration is not None else ()
    prepared = kernel.prepared.get(key)
    if prepared is None:
        prepared = kernel.prepared[key] = _prepare(kernel, place, configuration)
    return prepared


def specialize(program: Program, place: Place, configuration: LaunchConfig | None) -> Program:
    """Return the program for a target's tier, and for what its object code depends on of a configuration."""
    tier = chosen_tier(program, place.target)
    specialization = () if configuration is None else place.target.specializes_on(configuration)
    if tier == program.tier and specialization == program.specialization:
        return program
    return program._replace(tier=tier, specialization=specialization)


def _prepare(kernel: Launchable, place: Place, configuration: LaunchConfig | None) -> PreparedKernel:
    program = kernel.load(place, configuration)
    loaded = program.function(kernel.name)
    check_tier(program.program, loaded)
    return PreparedKernel(
        kernel.name,
        place,
        program.program,
        loaded,
        loaded.function.attributes(),
        place.target.limits(place.device),
        {},
    )
