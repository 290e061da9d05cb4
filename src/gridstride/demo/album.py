"""Turn what the stages give into pictures: before and after of each, and one sheet of them all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gridstride.demo.lettering import HEIGHT, write
from gridstride.demo.png import write_png
from gridstride.demo.scene import encode_srgb

Bytes = npt.NDArray[np.uint8]
Array = npt.NDArray[Any]

_PAPER = (244, 241, 234)
_INK = (38, 40, 48)
_FAINT = (120, 120, 126)
_MARGIN = 24
_LINE = 3 * HEIGHT
_THUMBNAIL = 300
#: The part of a picture that the sheet enlarges: top and left, as shares of a side, and its share.
_DETAIL = (0.30, 0.36, 0.25)


class Album:
    """Write pictures into a folder.

    Parameters
    ----------
    folder : Path
        Made where it does not exist.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._rows: list[tuple[str, str, Bytes, Bytes]] = []

    def add(self, name: str, what: str, before: Bytes, after: Bytes) -> None:
        """Write the pictures before and after a stage, side by side, with a caption.

        Parameters
        ----------
        name, what : str
            The stage and what it does.
        before, after : array of uint8, shape (size, size, 3)
        """
        self._rows.append((name, what, before, after))
        size = before.shape[0]
        page = _page(size + _LINE + 3 * _MARGIN, 2 * size + 3 * _MARGIN)
        self._caption(page, len(self._rows), name, what, _MARGIN)
        for column, picture in enumerate((before, after)):
            _place(page, picture, _LINE + 2 * _MARGIN, _MARGIN + column * (size + _MARGIN))
        write_png(self._folder / f"{len(self._rows)}-{name}.png", page)

    def write_sheet(self) -> Path:
        """Write the contact sheet: a row for each stage, whole pictures and details; return its path."""
        row_height = _THUMBNAIL + _LINE + 2 * _MARGIN
        page = _page(row_height * len(self._rows) + 3 * _MARGIN, 4 * (_THUMBNAIL + _MARGIN) + _MARGIN)
        for column, heading in enumerate(("before", "after", "before, a part", "after, a part")):
            write(page, heading, _MARGIN, _MARGIN + column * (_THUMBNAIL + _MARGIN), _FAINT, scale=2)
        for number, (name, what, before, after) in enumerate(self._rows, start=1):
            top = 3 * _MARGIN + (number - 1) * row_height
            self._caption(page, number, name, what, top)
            pictures = (before, after, _detail(before), _detail(after))
            for column, picture in enumerate(pictures):
                left = _MARGIN + column * (_THUMBNAIL + _MARGIN)
                _place(page, _resized(picture, _THUMBNAIL), top + _LINE + _MARGIN // 2, left)
        path = self._folder / "contact-sheet.png"
        write_png(path, page)
        return path

    def _caption(self, page: Bytes, number: int, name: str, what: str, top: int) -> None:
        title = f"{number} {name}"
        write(page, title, top, _MARGIN, _INK, scale=3)
        write(page, what, top + HEIGHT, _MARGIN + 18 * (len(title) + 1), _FAINT, scale=2)


def show_light(image: Array) -> Bytes:
    """Return a picture of linear light, shape (height, width, 4)."""
    return _bytes(encode_srgb(image[..., :3]))


def show_encoded(image: Array) -> Bytes:
    """Return a picture of an image that is encoded for the screen, shape (height, width, 4)."""
    return _bytes(image[..., :3])


def show_strength(strength: Array) -> Bytes:
    """Return a picture of edges, shape (height, width): dark lines on light paper."""
    return _bytes(_blend(np.clip(strength, 0, 1)))


def show_cells(cells: Array, size: int) -> Bytes:
    """Return a picture of the second substance of cells, shape (side, side, 2), enlarged to a size."""
    return _resized(_bytes(_blend(np.clip(cells[..., 1] / 0.36, 0, 1))), size)


def _blend(share: Array) -> Array:
    paper, ink = np.array(_PAPER) / 255, np.array(_INK) / 255
    blended: Array = paper + share[..., np.newaxis] * (ink - paper)
    return blended


def _bytes(image: Array) -> Bytes:
    levels: Bytes = np.rint(255 * np.clip(image, 0, 1)).astype(np.uint8)
    return levels


def _page(height: int, width: int) -> Bytes:
    return np.full((height, width, 3), _PAPER, np.uint8)


def _place(page: Bytes, picture: Bytes, top: int, left: int) -> None:
    height, width, _ = picture.shape
    page[top : top + height, left : left + width] = picture


def _detail(picture: Bytes) -> Bytes:
    size = picture.shape[0]
    top, left, share = (int(part * size) for part in _DETAIL)
    return picture[top : top + share, left : left + share]


def _resized(picture: Bytes, size: int) -> Bytes:
    """Return a square picture at another size: means of pixels when it shrinks, repeated pixels when it grows."""
    along = np.arange(size) * picture.shape[0] // size
    if size >= picture.shape[0]:
        enlarged: Bytes = picture[along][:, along]
        return enlarged
    rows = np.add.reduceat(picture.astype(np.float32), along, axis=0)
    sums = np.add.reduceat(rows, along, axis=1)
    lengths = np.diff(np.append(along, picture.shape[0])).astype(np.float32)
    levels: Bytes = np.rint(sums / (lengths[:, np.newaxis] * lengths)[..., np.newaxis]).astype(np.uint8)
    return levels
