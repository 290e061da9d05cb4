"""Write PNG files with the standard library alone."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import numpy as np
import numpy.typing as npt

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_BITS = 8
_RGB = 2
#: The row filter that stores differences from the pixel to the left, which compress better.
_SUB = 1


def write_png(path: Path, pixels: npt.NDArray[np.uint8]) -> None:
    """Write a picture.

    Parameters
    ----------
    path : Path
    pixels : array of uint8, shape (height, width, 3)
        sRGB.
    """
    if pixels.dtype != np.uint8 or pixels.ndim != 3 or pixels.shape[2] != 3:
        raise ValueError(
            f"pixels must be uint8 of shape (height, width, 3), got {pixels.dtype} {pixels.shape}"
        )
    height, width, channels = pixels.shape
    rows = np.full((height, 1 + width * channels), _SUB, np.uint8)
    differences = rows[:, 1:].reshape(height, width, channels)
    differences[:, :1] = pixels[:, :1]
    np.subtract(pixels[:, 1:], pixels[:, :-1], out=differences[:, 1:])
    header = struct.pack(">IIBBBBB", width, height, _BITS, _RGB, 0, 0, 0)
    content = (
        _chunk(b"IHDR", header) + _chunk(b"IDAT", zlib.compress(rows.tobytes(), 6)) + _chunk(b"IEND", b"")
    )
    path.write_bytes(_SIGNATURE + content)


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
