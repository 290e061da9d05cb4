"""Render the default input: a still life, photographed badly (dark, tinted by its lamp, noisy)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gridstride.demo.lettering import HEIGHT, lettering

Array = npt.NDArray[Any]
Bytes = npt.NDArray[np.uint8]

#: The lamp's light per channel: what the picture is tinted by.
LAMP = (1.0, 0.72, 0.42)

_EXPOSURE = 0.28
_READ_NOISE = 0.005
_SHOT_NOISE = 0.02
_EYE = np.array([0.0, 1.3, -5.2], np.float32)
_LIGHT = np.array([-0.52, 0.74, -0.43], np.float32)
_AMBIENT = 0.16
_WALL = 3.2
_FAR = np.float32(1e9)
#: How far above a surface its shadow and mirror rays start, so that they miss the surface itself.
_GAP = np.float32(2e-3)
_CHART = ("GRIDSTRIDE", "ONE SOURCE, TWO TARGETS", "__GLOBAL__ VOID SAXPY(FLOAT A, FLOAT* X)")


@dataclass(frozen=True, slots=True)
class _Sphere:
    center: tuple[float, float, float]
    radius: float
    color: tuple[float, float, float]
    mirror: float = 0.12


_SPHERES = (
    _Sphere((-1.45, 0.8, 0.6), 0.8, (0.85, 0.12, 0.10)),
    _Sphere((0.15, 1.05, 1.5), 1.05, (0.80, 0.82, 0.85), 0.65),
    _Sphere((1.65, 0.7, 0.3), 0.7, (0.10, 0.30, 0.80)),
    _Sphere((0.45, 0.4, -0.75), 0.4, (0.95, 0.70, 0.12)),
    _Sphere((-0.55, 0.3, -1.15), 0.3, (0.12, 0.60, 0.28)),
)


def photograph(size: int, seed: int = 7) -> Bytes:
    """Render the scene as a camera in bad light would see it.

    Parameters
    ----------
    size : int
        Pixels of a side.
    seed : int
        Of the sensor's noise.

    Returns
    -------
    array of uint8, shape (size, size, 3)
        sRGB.
    """
    light = render(size) * (_EXPOSURE * np.array(LAMP, np.float32))
    noise = np.random.default_rng(seed).standard_normal(light.shape, np.float32)
    light += noise * np.sqrt(_READ_NOISE**2 + _SHOT_NOISE**2 * light)
    levels: Bytes = np.rint(255 * encode_srgb(light)).astype(np.uint8)
    return levels


def render(size: int) -> Array:
    """Return the scene in linear light, shape (size, size, 3), as its makers meant it."""
    across = (np.arange(size, dtype=np.float32) + 0.5) / size - 0.5
    directions = np.empty((size, size, 3), np.float32)
    directions[..., 0] = across
    directions[..., 1] = -across[:, np.newaxis] - 0.04
    directions[..., 2] = 1.1
    rays = directions.reshape(-1, 3)
    rays /= np.linalg.norm(rays, axis=1, keepdims=True)
    return _trace(np.broadcast_to(_EYE, rays.shape), rays, bounces=1).reshape(size, size, 3)


def encode_srgb(light: npt.NDArray[np.floating[Any]]) -> Array:
    """Return sRGB values from 0 to 1 for linear light."""
    light = np.clip(light, 0, 1)
    return np.where(light <= 0.0031308, 12.92 * light, 1.055 * light ** (1 / 2.4) - 0.055).astype(np.float32)


def _trace(origins: Array, rays: Array, bounces: int) -> Array:
    """Return the light that arrives along each ray, arrays of shape (rays, 3)."""
    distance, what = _nearest(origins, rays)
    light = np.repeat(0.35 + 0.5 * np.abs(rays[:, 1:2]), 3, axis=1)  # the room behind the camera
    met = distance < _FAR
    origins, rays = origins[met], rays[met]
    points = origins + distance[met, np.newaxis] * rays
    color, normal, mirror = _surface(points, what[met])
    reflected = rays - 2 * _dot(rays, normal)[:, np.newaxis] * normal
    outside = points + _GAP * normal
    lit = np.clip(normal @ _LIGHT, 0, None) * ~_shadowed(outside)
    shade = color * (_AMBIENT + (1 - _AMBIENT) * lit)[:, np.newaxis]
    shade += (lit * np.clip(reflected @ _LIGHT, 0, None) ** 48 * (mirror > 0))[:, np.newaxis]
    if bounces:
        shiny = mirror > 0
        seen = _trace(outside[shiny], reflected[shiny], bounces - 1)
        shade[shiny] += mirror[shiny, np.newaxis] * (seen - shade[shiny])
    light[met] = shade
    return light


def _nearest(origins: Array, rays: Array) -> tuple[Array, npt.NDArray[np.intp]]:
    """Return the distance to what each ray meets first, and its number: spheres, then floor and wall."""
    slope = np.where(np.abs(rays) < 1e-6, np.float32(1e-6), rays)
    candidates = [_meet_sphere(origins, rays, sphere) for sphere in _SPHERES]
    candidates.append(-origins[:, 1] / slope[:, 1])
    candidates.append((_WALL - origins[:, 2]) / slope[:, 2])
    distances = np.stack([np.where(d > 0, d, _FAR) for d in candidates])
    return distances.min(axis=0), distances.argmin(axis=0)


def _meet_sphere(origins: Array, rays: Array, sphere: _Sphere) -> Array:
    offset = origins - np.array(sphere.center, np.float32)
    along = _dot(offset, rays)
    inside = along**2 - _dot(offset, offset) + np.float32(sphere.radius**2)
    return np.where(inside > 0, -along - np.sqrt(np.maximum(inside, 0)), _FAR)


def _dot(a: Array, b: Array) -> Array:
    product: Array = np.einsum("ij,ij->i", a, b)
    return product


def _surface(points: Array, what: npt.NDArray[np.intp]) -> tuple[Array, Array, Array]:
    """Return color, normal and share of mirrored light at each point."""
    color, normal = np.empty_like(points), np.empty_like(points)
    mirror = np.zeros(len(points), np.float32)
    for number, sphere in enumerate(_SPHERES):
        here = what == number
        color[here] = sphere.color
        normal[here] = (points[here] - np.array(sphere.center, np.float32)) / sphere.radius
        mirror[here] = sphere.mirror
    floor, wall = what == len(_SPHERES), what == len(_SPHERES) + 1
    color[floor], normal[floor] = _floor_color(points[floor]), (0, 1, 0)
    color[wall], normal[wall] = _wall_color(points[wall]), (0, 0, -1)
    return color, normal, mirror


def _shadowed(points: Array) -> Array:
    rays = np.broadcast_to(_LIGHT, points.shape)
    hits = [_meet_sphere(points, rays, sphere) for sphere in _SPHERES]
    nearest: Array = np.min(np.where(np.stack(hits) > 0, hits, _FAR), axis=0)
    return nearest < _FAR


def _floor_color(points: Array) -> Array:
    """Paint a checkered floor."""
    checker = np.floor(points[:, 0] * 1.5) + np.floor(points[:, 2] * 1.5)
    shade = np.where(checker % 2 == 0, 0.62, 0.16)
    return np.stack([shade, 0.94 * shade, 0.86 * shade], axis=1).astype(np.float32)


def _wall_color(points: Array) -> Array:
    """Paint a wall whose color changes smoothly, with lines of fine print like an eye test."""
    height = np.clip(points[:, 1] / 5, 0, 1)[:, np.newaxis]
    color: Array = (1 - height) * np.array([0.55, 0.62, 0.60]) + height * np.array([0.30, 0.42, 0.62])
    top = 4.6
    for text in _CHART:
        mask = lettering(text)
        pixel = min(6.4 / mask.shape[1], 0.085)
        column = np.floor(points[:, 0] / pixel + mask.shape[1] / 2).astype(int)
        row = np.floor((top - points[:, 1]) / pixel).astype(int)
        inside = (column >= 0) & (column < mask.shape[1]) & (row >= 0) & (row < HEIGHT)
        color[inside] *= np.where(mask[row[inside], column[inside]], 0.12, 1)[:, np.newaxis]
        top -= (HEIGHT + 4) * pixel
    return color
