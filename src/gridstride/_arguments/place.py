"""Where a call runs: the target and device that the arguments decide."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from gridstride.arrays.view import HOST, PINNED, UNKNOWN_DEVICE, ArrayView
from gridstride.errors import ArgumentTypeError
from gridstride.targets import registry
from gridstride.targets.base import Target


class Place(NamedTuple):
    """Name a target and one of its devices."""

    target: Target
    device: int


def place_of(kernel: str, views: Sequence[ArrayView | None]) -> Place:
    """Return where the arrays live; without arrays the default target and its current device.

    Raises
    ------
    TypeError
        Where arguments live in different places; it names each.
    TargetUnavailable
        Where the arrays' target cannot be used on this machine.
    """
    arrays = {position: view for position, view in enumerate(views) if view is not None}
    deciding = {position: view for position, view in arrays.items() if not _is_value(view)} or arrays
    if not deciding:
        target = registry.default()
        return Place(target, target.current_device())
    devices = {
        registry.serving(view.device_type): view.device for view in deciding.values() if _is_placed(view)
    }
    places = {position: _place_of_view(view, devices) for position, view in deciding.items()}
    distinct = list(dict.fromkeys((place.target.name, place.device) for place in places.values()))
    if len(distinct) > 1:
        raise ArgumentTypeError(
            f"`{kernel}`: the arguments live in different places: {_listing(deciding)}. Move them to one device",
            kernel=kernel,
            expected="one place",
            got=", ".join(f"{name} device {device}" for name, device in distinct),
        )
    return next(iter(places.values()))


def _is_value(view: ArrayView) -> bool:
    """Return whether a host array can be meant as a number or a struct passed by value."""
    return view.device_type == HOST and (
        view.shape == () or (view.size == 1 and view.dtype.names is not None)
    )


def _is_placed(view: ArrayView) -> bool:
    """Return whether an array lies on one device; host memory of ours does on a target that has several."""
    return view.device != UNKNOWN_DEVICE and (
        view.device_type not in (HOST, PINNED) or view.library == "memory"
    )


def _place_of_view(view: ArrayView, devices: Mapping[Target, int]) -> Place:
    """Return where an array lives; one on no device lives beside another of its target, else on the current one."""
    target = registry.serving(view.device_type)
    if _is_placed(view):
        return Place(target, view.device)
    return Place(target, devices[target] if target in devices else target.current_device())


def _listing(views: Mapping[int, ArrayView]) -> str:
    return ", ".join(
        f"argument {position} is a {view.library} array on DLPack device ({view.device_type}, {view.device})"
        for position, view in views.items()
    )
