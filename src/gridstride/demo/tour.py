"""The demonstration from start to end."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import numpy.typing as npt

import gridstride as gs
from gridstride import arrays
from gridstride.demo import stages
from gridstride.demo.album import Album, show_cells, show_encoded, show_light, show_strength
from gridstride.demo.progress import Progress
from gridstride.demo.scene import photograph
from gridstride.demo.workbench import Measurement, Workbench
from gridstride.targets import registry
from gridstride.targets.base import Target

SMALLEST = 64

Picture = npt.NDArray[np.uint8]

_COPY_BYTES = 1 << 26
#: Lines of progress: the picture and seven stages.
_LINES = 8


@dataclass(frozen=True, slots=True)
class Settings:
    """Say what to process and where the pictures go.

    Attributes
    ----------
    output : Path
    size : int
        Pixels of a side, at least 64.
    steps : int
        Of the Gray-Scott reaction, at least 1.
    image : Path or None
        A picture to read through Pillow; None renders a scene.
    """

    output: Path
    size: int
    steps: int
    image: Path | None = None

    def __post_init__(self) -> None:
        if self.size < SMALLEST:
            raise ValueError(f"the size must be at least {SMALLEST} pixels, got {self.size}")
        if self.steps < 1:
            raise ValueError(f"the reaction must have at least 1 step, got {self.steps}")


@dataclass(frozen=True, slots=True)
class Report:
    """Hold what the demonstration found out.

    Attributes
    ----------
    measurements : tuple of Measurement
        One for each kernel.
    target, tier, device : str
        Where the kernels ran, and how the threads of a block ran there.
    copy_bandwidth : float
        Bytes per second of the array library's own copy in the same run.
    seconds : float
        From start to end.
    sheet : Path
        The contact sheet.
    """

    measurements: tuple[Measurement, ...]
    target: str
    tier: str
    device: str
    copy_bandwidth: float
    seconds: float
    sheet: Path

    @property
    def passed(self) -> bool:
        """Whether every kernel's error is within its tolerance."""
        return all(measurement.passed for measurement in self.measurements)


def run(settings: Settings, stream: TextIO) -> Report:
    """Process a picture stage by stage, check every stage, and write pictures.

    Parameters
    ----------
    settings : Settings
    stream : text stream
        Where the progress is shown.

    Returns
    -------
    Report
        Also where errors exceed the tolerances.

    Raises
    ------
    OSError
        The output folder or the image cannot be used.
    ImportError
        An image is given and Pillow is not installed.
    GridstrideError
        No target is available, or one failed.
    """
    begin = time.perf_counter()
    with gs.use_target(_target_of_arrays()) as target:
        progress = Progress(_LINES, stream)
        bench = Workbench(progress.update)
        album = Album(settings.output)
        _process(settings, _Tour(bench, album, progress))
        sheet = album.write_sheet()
        return Report(
            measurements=tuple(bench.measurements),
            target=target.name,
            tier=_tier(target),
            device=target.limits(target.current_device()).name,
            copy_bandwidth=bench.copy_bandwidth(_COPY_BYTES),
            seconds=time.perf_counter() - begin,
            sheet=sheet,
        )


class _Tour:
    """Lead from stage to stage: announce, run, draw, and say what became of it."""

    def __init__(self, bench: Workbench, album: Album, progress: Progress) -> None:
        self._bench = bench
        self._album = album
        self._progress = progress
        self._shown: Picture = np.zeros((0, 0, 3), np.uint8)

    def begin(self, what: str, picture: Callable[[], Picture]) -> Any:
        """Return the first picture as an array of the active array library."""
        self._progress.start("picture")
        self._shown = picture()
        self._progress.finish(what)
        return gs.asarray(self._shown)

    def stage(
        self, what: str, show: Callable[[Any], Picture], compute: Callable[..., Any], *args: Any
    ) -> Any:
        """Return what a stage computes; draw it with `show`."""
        name = compute.__name__
        self._progress.start(name)
        known = len(self._bench.measurements)
        result = compute(self._bench, *args)
        self._progress.update("drawing")
        before, self._shown = self._shown, show(gs.asnumpy(result))
        self._album.add(name, what, before, self._shown)
        self._progress.finish(_verdict(self._bench.measurements[known:]))
        return result


def _process(settings: Settings, tour: _Tour) -> None:
    """Lead one picture through all stages."""

    def show_reaction(cells: Any) -> Picture:
        return show_cells(cells, settings.size)

    levels = tour.begin(*_picture(settings))
    light = tour.stage("per pixel: bytes to linear light, tint removed", show_light, stages.develop, levels)
    clean = tour.stage("stencil, shared memory halo: bilateral 5 x 5", show_light, stages.denoise, light)
    sharp = tour.stage("separable convolution, constant taps", show_light, stages.sharpen, clean)
    exposed = tour.stage("reduction with warp shuffles, tone curve", show_encoded, stages.expose, sharp)
    image = tour.stage("histogram with atomics, scan, look-up", show_encoded, stages.equalize, exposed)
    strength = tour.stage(
        "stencil, dynamic shared memory: Sobel, array kernels", show_strength, stages.outline, image
    )
    what = f"Gray-Scott reaction, {settings.steps} steps"
    tour.stage(what, show_reaction, stages.react, image, strength, settings.steps)


def _picture(settings: Settings) -> tuple[str, Callable[[], Picture]]:
    """Return a description of the input, and what makes it."""
    size, path = settings.size, settings.image
    if path is None:
        return f"a scene rendered with NumPy, {size} x {size}", lambda: photograph(size)
    return f"{path.name}, cropped to {size} x {size}", lambda: _read(path, size)


def _read(path: Path, size: int) -> Picture:
    try:
        from PIL import Image, ImageOps
    except ImportError:
        raise ImportError(
            "reading an image needs Pillow: pip install 'gridstride[demo]' (without --image a scene is rendered)"
        ) from None
    with Image.open(path) as opened:
        upright = ImageOps.exif_transpose(opened).convert("RGB")
        return np.asarray(ImageOps.fit(upright, (size, size)))


def _verdict(measurements: list[Measurement]) -> str:
    milliseconds = sum(measurement.milliseconds for measurement in measurements)
    if all(measurement.passed for measurement in measurements):
        worst = max(measurement.error for measurement in measurements)
        return f"{milliseconds:8.2f} ms in kernels, largest error {worst:.1e}"
    wrong = ", ".join(measurement.kernel for measurement in measurements if not measurement.passed)
    return f"WRONG RESULT: {wrong}"


def _target_of_arrays() -> str:
    """Return the name of the target that runs on the active array library's arrays.

    Events and memory are then of the same target as the arrays, also on a machine with a GPU but
    without an array library for it.
    """
    view = arrays.view(gs.empty(1))
    assert view is not None
    return registry.serving(view.device_type).name


def _tier(target: Target) -> str:
    """Return how the threads of a block run: as fibers on the host's threads, or in the device's hardware."""
    return "fibers" if "threads" in target.features else "hardware"
