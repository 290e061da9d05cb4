"""What each kernel of the demonstration should give: the same mathematics in NumPy, in double precision."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

LUMINANCE = (0.2126, 0.7152, 0.0722)
BINS = 256
_TINY = 1e-6
_LEVELS = np.arange(256) / 255
#: The linear light of each sRGB byte.
LINEAR = np.where(_LEVELS <= 0.04045, _LEVELS / 12.92, ((_LEVELS + 0.055) / 1.055) ** 2.4)


def develop(levels: npt.NDArray[np.uint8], balance: Array) -> Array:
    """Return linear light and luminance, shape (height, width, 4), of sRGB bytes (height, width, 3)."""
    color = np.maximum(LINEAR[levels] @ np.asarray(balance, np.float64).T, 0)
    return np.concatenate([color, (color @ np.array(LUMINANCE))[..., np.newaxis]], axis=-1)


def denoise(image: Array, radius: int, spread: float, noise: float) -> Array:
    """Return the image averaged over neighbors, weighted by distance and by difference in luminance."""
    height, width, _ = image.shape
    padded = np.pad(image.astype(np.float64), ((radius, radius), (radius, radius), (0, 0)), mode="edge")
    here = image[..., 3].astype(np.float64)
    total = np.zeros((height, width, 1))
    result = np.zeros((height, width, 4))
    for y in range(2 * radius + 1):
        for x in range(2 * radius + 1):
            other = padded[y : y + height, x : x + width]
            distance = (y - radius) ** 2 + (x - radius) ** 2
            exponent = ((other[..., 3] - here) / noise) ** 2 + distance / spread**2
            weight = np.exp(-0.5 * exponent)[..., np.newaxis]
            result += weight * other
            total += weight
    return result / total


def correlate(values: Array, taps: Array, axis: int) -> Array:
    """Return the weighted sum of neighbors along an axis, edges repeated: SciPy's, where it is installed."""
    values, taps = values.astype(np.float64), np.asarray(taps, np.float64)
    try:
        ndimage = import_module("scipy.ndimage")
    except ImportError:
        return correlate_by_shifts(values, taps, axis)
    return np.asarray(ndimage.correlate1d(values, taps, axis, mode="nearest"))


def correlate_by_shifts(values: Array, taps: Array, axis: int) -> Array:
    """Return the same as `correlate` with NumPy alone."""
    radius = len(taps) // 2
    padding = [(0, 0)] * values.ndim
    padding[axis] = (radius, radius)
    padded = np.moveaxis(np.pad(values, padding, mode="edge"), axis, 0)
    length = values.shape[axis]
    total = sum(tap * padded[k : k + length] for k, tap in enumerate(taps))
    return np.moveaxis(np.asarray(total), 0, axis)


def unsharp(image: Array, blurred: Array, amount: float) -> Array:
    """Return the image with what the blur took away added."""
    image, blurred = image.astype(np.float64), blurred.astype(np.float64)
    luminance = image[..., 3]
    wanted = np.maximum(0.25 * luminance, luminance + amount * (luminance - blurred[..., 3]))
    return _rescaled(image, wanted)


def statistics(luminance: Array) -> Array:
    """Return count, mean, sum of squared differences from the mean, least and greatest."""
    values = luminance.astype(np.float64)
    mean = values.mean()
    return np.array([values.size, mean, ((values - mean) ** 2).sum(), values.min(), values.max()])


def expose(image: Array, totals: Array, middle: float) -> Array:
    """Return the image with its mean brought to the middle, on a tone curve, encoded for the screen."""
    image = image.astype(np.float64)
    count, mean, squares, _, greatest = totals
    exposure = middle / max(mean, _TINY)
    white = exposure * max(min(greatest, mean + 4 * np.sqrt(squares / count)), _TINY)
    light = exposure * image[..., 3]
    toned = light * (1 + light / white**2) / (1 + light)
    return _rescaled(image, np.minimum(toned, 1) ** (1 / 2.2))


def histogram(luminance: Array) -> npt.NDArray[np.int64]:
    """Return how many pixels fall into each of 256 bins of luminance."""
    return np.bincount(_bin_position(luminance).astype(np.intp).ravel(), minlength=BINS)


def accumulate(counts: npt.NDArray[np.integer[Any]]) -> Array:
    """Return the share of pixels in each bin and those before."""
    sums = np.cumsum(counts, dtype=np.int64)
    shares: Array = sums / sums[-1]
    return shares


def equalize(image: Array, curve: Array, strength: float) -> Array:
    """Return the image with each luminance moved towards its rank."""
    luminance = image[..., 3].astype(np.float64)
    rank = np.interp(_bin_position(image[..., 3]), np.arange(BINS), curve.astype(np.float64))
    return _rescaled(image.astype(np.float64), luminance + strength * (rank - luminance))


def edges(luminance: Array) -> Array:
    """Return the strength of the Sobel gradient."""
    slope, smooth = np.array([-1, 0, 1]), np.array([1, 2, 1])
    across = correlate(correlate(luminance, slope, 1), smooth, 0)
    down = correlate(correlate(luminance, slope, 0), smooth, 1)
    return np.hypot(across, down)


def even(strength: Array, most: Array, share: float) -> Array:
    """Return edges with the strongest of each row nearer to 1."""
    return strength / (1 - share + share * most.astype(np.float64))


def smooth(strength: Any) -> Any:
    """Return edges without those that are hardly there: arrays, or what stands for them in a fused function."""
    limited = np.clip(strength, 0, 1)
    return limited * limited * (3 - 2 * limited)


def seed(luminance: Array, strength: Array, side: int, scale: int) -> tuple[Array, Array]:
    """Return the first cells, shape (side, side, 2), and the mean luminance of each, (side, side)."""
    edge, light = (
        values[: side * scale, : side * scale]
        .astype(np.float64)
        .reshape(side, scale, side, scale)
        .mean(axis=(1, 3))
        for values in (strength, luminance)
    )
    in_spot = np.arange(side) % 12 < 4
    spots = np.where(in_spot & in_spot[:, np.newaxis], 0.5, 0)
    v = np.maximum(spots, 0.35 * np.minimum(edge, 1))
    return np.stack([1 - v, v], axis=-1), light


def react(cells: Array, light: Array, rates: dict[str, float], steps: int) -> Array:
    """Return the cells after some steps of the Gray-Scott reaction on a torus."""
    u, v = (cells[..., k].astype(np.float64) for k in (0, 1))
    light = light.astype(np.float64)
    feed = rates["feed_dark"] + light * (rates["feed_bright"] - rates["feed_dark"])
    kill = rates["kill_dark"] + light * (rates["kill_bright"] - rates["kill_dark"])
    for _ in range(steps):
        made = u * v * v
        u, v = (
            u + rates["diffusion_u"] * _spread(u) - made + feed * (1 - u),
            v + rates["diffusion_v"] * _spread(v) + made - (feed + kill) * v,
        )
    return np.stack([u, v], axis=-1)


def _spread(field: Array) -> Array:
    """Return the sum of the four neighbors less four times the field, on a torus."""
    result = -4 * field
    result[1:] += field[:-1]
    result[:-1] += field[1:]
    result[:, 1:] += field[:, :-1]
    result[:, :-1] += field[:, 1:]
    result[0] += field[-1]
    result[-1] += field[0]
    result[:, 0] += field[:, -1]
    result[:, -1] += field[:, 0]
    return result


def _bin_position(luminance: Array) -> Array:
    # In single precision as the kernel does it, so that both put every pixel into the same bin.
    return np.clip(luminance, 0, 1).astype(np.float32) * np.float32(BINS - 1)


def _rescaled(image: Array, wanted: Array) -> Array:
    """Return the image with all components scaled alike, so that its luminance is what is wanted."""
    luminance = image[..., 3]
    gain = np.divide(wanted, luminance, out=np.zeros_like(wanted), where=luminance > 0)
    return image * gain[..., np.newaxis]
