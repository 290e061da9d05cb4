"""The stages of the demonstration: each launches kernels of one file and checks what they give.

They read as any program that uses gridstride: nothing here says where the kernels run.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import gridstride as gs
from gridstride.demo import reference
from gridstride.demo.workbench import Workbench

_THREADS = 256
_TILE = (32, 8)
_REDUCTION_BLOCKS = 128

_BALANCE_TYPE = np.dtype([("row", np.float32, (3, 3))])
_DENOISE_RADIUS, _SPREAD, _NOISE = 2, 2.0, 0.025
_SHARPEN_RADIUS, _BLUR, _AMOUNT = 8, 3.0, 0.7
_MIDDLE = 0.30
_STRENGTH = 0.3
_EVENED = 0.4
_STATISTICS = np.dtype([(name, np.float32) for name in ("count", "mean", "squares", "least", "greatest")])
_CELL_PIXELS = 2
_STEPS_TOLD = 20
_RATES = {
    "diffusion_u": 0.08,
    "diffusion_v": 0.04,
    "feed_dark": 0.050,
    "feed_bright": 0.065,
    "kill_dark": 0.0590,
    "kill_bright": 0.0645,
}
_RATES_TYPE = np.dtype([(name, np.float32) for name in _RATES])


def develop(bench: Workbench, levels: Any) -> Any:
    """Return linear light (height, width, 4) of sRGB bytes (height, width, 3): a per-pixel kernel."""
    kernel = bench.module("develop").get_function("develop")
    height, width, _ = levels.shape
    image = gs.empty((height, width, 4), dtype=np.float32)
    pixels = height * width
    balance = np.zeros((), _BALANCE_TYPE)[()]
    balance["row"] = np.diag(_gains(gs.asnumpy(levels)))
    bench.run(
        "develop",
        lambda: kernel(_blocks(pixels), _THREADS, (levels, image, balance, pixels)),
        moved=levels.nbytes + image.nbytes,
        result=lambda: gs.asnumpy(image),
        expected=lambda: reference.develop(gs.asnumpy(levels), balance["row"]),
        tolerance=2e-6,
    )
    return image


def denoise(bench: Workbench, image: Any) -> Any:
    """Return the image without its noise: a stencil that loads tile and halo into shared memory."""
    kernel = bench.module("denoise").get_function("denoise")
    height, width, _ = image.shape
    result = gs.empty_like(image)
    bench.run(
        "denoise",
        lambda: kernel(_tiles(height, width), _TILE, (image, result, height, width, _SPREAD, _NOISE)),
        moved=image.nbytes + result.nbytes,
        result=lambda: gs.asnumpy(result),
        expected=lambda: reference.denoise(gs.asnumpy(image), _DENOISE_RADIUS, _SPREAD, _NOISE),
        tolerance=5e-6,
    )
    return result


def sharpen(bench: Workbench, image: Any) -> Any:
    """Return the image with stronger detail: a separable convolution with taps in constant memory."""
    module = bench.module("sharpen", ["convolve<ROWS>", "convolve<COLUMNS>"])
    along_rows, along_columns = (module.get_function(f"convolve<{axis}>") for axis in ("ROWS", "COLUMNS"))
    unsharp = module.get_function("unsharp")
    taps = _gaussian(_SHARPEN_RADIUS, _BLUR)
    module.get_global("taps").copy_from_host(taps)
    height, width, _ = image.shape
    grid = _tiles(height, width)
    partly, blurred, result = (gs.empty_like(image) for _ in range(3))
    bench.run(
        "convolve<ROWS>",
        lambda: along_rows(grid, _TILE, (image, partly, height, width)),
        moved=image.nbytes + partly.nbytes,
        result=lambda: gs.asnumpy(partly),
        expected=lambda: reference.correlate(gs.asnumpy(image), taps, axis=1),
        tolerance=2e-6,
    )
    bench.run(
        "convolve<COLUMNS>",
        lambda: along_columns(grid, _TILE, (partly, blurred, height, width)),
        moved=partly.nbytes + blurred.nbytes,
        result=lambda: gs.asnumpy(blurred),
        expected=lambda: reference.correlate(gs.asnumpy(partly), taps, axis=0),
        tolerance=2e-6,
    )
    pixels = height * width
    bench.run(
        "unsharp",
        lambda: unsharp(_blocks(pixels), _THREADS, (image, blurred, result, _AMOUNT, pixels)),
        moved=image.nbytes + blurred.nbytes + result.nbytes,
        result=lambda: gs.asnumpy(result),
        expected=lambda: reference.unsharp(gs.asnumpy(image), gs.asnumpy(blurred), _AMOUNT),
        tolerance=2e-6,
    )
    return result


def expose(bench: Workbench, image: Any) -> Any:
    """Return the image as bright as it should be: a reduction with warp shuffles, then a tone curve."""
    module = bench.module("expose")
    measure, combine, tone = (module.get_function(name) for name in ("measure", "combine", "expose"))
    height, width, _ = image.shape
    pixels = height * width
    of_block = gs.cuda.alloc(_REDUCTION_BLOCKS * _STATISTICS.itemsize)
    total = gs.cuda.alloc(_STATISTICS.itemsize)
    result = gs.empty_like(image)

    def reduce() -> None:
        measure(_REDUCTION_BLOCKS, _THREADS, (image, of_block, pixels))
        combine(1, _THREADS, (of_block, total, _REDUCTION_BLOCKS))

    def totals() -> Any:
        return gs.asnumpy(total).view(np.float32)

    exact = reference.statistics(gs.asnumpy(image)[..., 3])
    magnitudes = np.where(exact == 0, 1, exact)
    bench.run(
        "measure, combine",
        reduce,
        launches=2,
        moved=image.nbytes,
        result=lambda: totals() / magnitudes,
        expected=lambda: exact / magnitudes,
        tolerance=1e-5,
    )
    bench.run(
        "expose",
        lambda: tone(_blocks(pixels), _THREADS, (image, total, result, _MIDDLE, pixels)),
        moved=image.nbytes + result.nbytes,
        result=lambda: gs.asnumpy(result),
        expected=lambda: reference.expose(gs.asnumpy(image), totals(), _MIDDLE),
        tolerance=5e-6,
    )
    return result


def equalize(bench: Workbench, image: Any) -> Any:
    """Return the image with its shades spread out: a histogram with atomics, a scan, a look-up."""
    module = bench.module("equalize")
    histogram, accumulate, look_up = (
        module.get_function(name) for name in ("histogram", "accumulate", "equalize")
    )
    height, width, _ = image.shape
    pixels = height * width
    counts = gs.zeros(reference.BINS, dtype=np.uint32)
    curve = gs.empty(reference.BINS, dtype=np.float32)
    result = gs.empty_like(image)

    def count() -> None:
        counts[...] = 0
        histogram(_REDUCTION_BLOCKS, _THREADS, (image, counts, pixels))

    bench.run(
        "histogram",
        count,
        moved=image.nbytes,
        result=lambda: gs.asnumpy(counts),
        expected=lambda: reference.histogram(gs.asnumpy(image)[..., 3]),
        tolerance=0.0,
    )
    bench.run(
        "accumulate",
        lambda: accumulate(1, reference.BINS, (counts, curve)),
        moved=counts.nbytes + curve.nbytes,
        result=lambda: gs.asnumpy(curve),
        expected=lambda: reference.accumulate(gs.asnumpy(counts)),
        tolerance=2e-7,
    )
    bench.run(
        "equalize",
        lambda: look_up(_blocks(pixels), _THREADS, (image, curve, result, _STRENGTH, pixels)),
        moved=image.nbytes + result.nbytes,
        result=lambda: gs.asnumpy(result),
        expected=lambda: reference.equalize(gs.asnumpy(image), gs.asnumpy(curve), _STRENGTH),
        tolerance=5e-6,
    )
    return result


def outline(bench: Workbench, image: Any) -> Any:
    """Return the strength of the edges (height, width): a stencil with dynamic shared memory."""
    kernel = bench.module("edges").get_function("edges")
    height, width, _ = image.shape
    strength = gs.empty((height, width), dtype=np.float32)
    halo = (_TILE[0] + 2) * (_TILE[1] + 2) * strength.itemsize
    bench.run(
        "edges",
        lambda: kernel(_tiles(height, width), _TILE, (image, strength, height, width), shared_mem=halo),
        moved=image.nbytes + strength.nbytes,
        result=lambda: gs.asnumpy(strength),
        expected=lambda: reference.edges(gs.asnumpy(image)[..., 3]),
        magnitude=1.0,
        tolerance=2e-6,
    )
    return _evened(bench, strength)


def _evened(bench: Workbench, strength: Any) -> Any:
    """Return edges that show in dark rows too: a reduction, an elementwise kernel that broadcasts, a fused function."""
    strongest = gs.ReductionKernel("T x", "T most", "x", "a > b ? a : b", identity="0", name="strongest")
    even = gs.ElementwiseKernel("T x, T most, T share", "T y", "y = x / (1 - share + share * most)", "even")
    smooth = gs.fuse(reference.smooth, kernel_name="smooth")
    height, _ = strength.shape
    most, evened = gs.empty((height, 1), dtype=np.float32), gs.empty_like(strength)
    smoothed: list[Any] = []
    bench.run(
        "strongest",
        lambda: strongest(strength, axis=1, keepdims=True, out=most),
        moved=strength.nbytes + most.nbytes,
        result=lambda: gs.asnumpy(most),
        expected=lambda: gs.asnumpy(strength).max(axis=1, keepdims=True),
        tolerance=0.0,
    )
    bench.run(
        "even",
        lambda: even(strength, most, _EVENED, evened),
        moved=2 * strength.nbytes + most.nbytes,
        result=lambda: gs.asnumpy(evened),
        expected=lambda: reference.even(gs.asnumpy(strength), gs.asnumpy(most), _EVENED),
        tolerance=2e-6,
    )
    bench.run(
        "smooth",
        lambda: smoothed.append(smooth(evened)),
        moved=2 * evened.nbytes,
        result=lambda: gs.asnumpy(smoothed[-1]),
        expected=lambda: reference.smooth(gs.asnumpy(evened).astype(np.float64)),
        tolerance=2e-6,
    )
    return smoothed[-1]


def react(bench: Workbench, image: Any, strength: Any, steps: int) -> Any:
    """Return the cells (side, side, 2) of a Gray-Scott reaction that the picture seeds and feeds."""
    module = bench.module("react")
    seed, step = (module.get_function(name) for name in ("seed", "react"))
    height, width, _ = image.shape
    side = min(height, width) // _CELL_PIXELS
    first, cells, others = (gs.empty((side, side, 2), dtype=np.float32) for _ in range(3))
    light = gs.empty((side, side), dtype=np.float32)
    rates = np.array(tuple(_RATES.values()), _RATES_TYPE)[()]
    grid = _tiles(side, side)

    def planted() -> Any:
        return np.concatenate([gs.asnumpy(first), gs.asnumpy(light)[..., np.newaxis]], axis=-1)

    def planted_reference() -> Any:
        exact_cells, exact_light = reference.seed(
            gs.asnumpy(image)[..., 3], gs.asnumpy(strength), side, _CELL_PIXELS
        )
        return np.concatenate([exact_cells, exact_light[..., np.newaxis]], axis=-1)

    def advance() -> None:
        cells[...] = first
        before, after = cells, others
        for number in range(steps):
            if number % _STEPS_TOLD == 0:
                bench.tell(f"react: step {number} of {steps}")
            step(grid, _TILE, (before, after, light, rates, side))
            before, after = after, before

    bench.run(
        "seed",
        lambda: seed(grid, _TILE, (image, strength, first, light, width, side, _CELL_PIXELS)),
        moved=image.nbytes + strength.nbytes + first.nbytes + light.nbytes,
        result=planted,
        expected=planted_reference,
        tolerance=1e-6,
    )
    last = others if steps % 2 else cells
    bench.run(
        "react",
        advance,
        warm_up=lambda: step(grid, _TILE, (first, others, light, rates, side)),
        launches=steps,
        repeats=1,
        moved=steps * (cells.nbytes + others.nbytes + light.nbytes),
        result=lambda: gs.asnumpy(last),
        expected=lambda: reference.react(gs.asnumpy(first), gs.asnumpy(light), _RATES, steps),
        tolerance=2e-3,
    )
    return last


def _gains(levels: Any) -> Any:
    """Return the factors per channel that make the mean color gray."""
    means = reference.LINEAR[levels].mean(axis=(0, 1))
    return np.clip(means.mean() / np.maximum(means, 1e-6), 0.3, 3)


def _blocks(pixels: int) -> int:
    return -(-pixels // _THREADS)


def _tiles(height: int, width: int) -> tuple[int, int]:
    return -(-width // _TILE[0]), -(-height // _TILE[1])


def _gaussian(radius: int, deviation: float) -> Any:
    weights = np.exp(-0.5 * (np.arange(-radius, radius + 1) / deviation) ** 2)
    return (weights / weights.sum()).astype(np.float32)
