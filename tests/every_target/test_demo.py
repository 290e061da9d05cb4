"""``gridstride demo``: its kernels give what NumPy gives, its pictures are pictures, wrong results are found."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import gridstride as gs
from gridstride import cli
from gridstride.demo import workbench
from gridstride.demo.png import write_png
from gridstride.targets.base import Target

KERNELS = (
    "develop",
    "denoise",
    "convolve<ROWS>",
    "convolve<COLUMNS>",
    "unsharp",
    "measure, combine",
    "expose",
    "histogram",
    "accumulate",
    "equalize",
    "edges",
    "strongest",
    "even",
    "smooth",
    "seed",
    "react x 5",
)
PICTURES = ("develop", "denoise", "sharpen", "expose", "equalize", "outline", "react")


@pytest.fixture(autouse=True)
def _arrays_of_the_target(target: Target, xp: ModuleType) -> Iterator[None]:
    with gs.use_backend(xp.__name__, strict=True):
        yield


def demo(output: Path, *arguments: str, size: int = 72) -> int:
    return cli.main(["demo", "--output", str(output), "--size", str(size), "--steps", "5", *arguments])


# 72 is no multiple of the tiles, 75 none of a cell's pixels either.
@pytest.mark.parametrize("size", [64, 72, 75])
def test_every_kernel_agrees_with_numpy(
    target: Target, tmp_path: Path, capsys: pytest.CaptureFixture[str], size: int
) -> None:
    assert demo(tmp_path / "new" / "folder", size=size) == 0
    table = (tmp_path / "new" / "folder" / "table.txt").read_text()
    rows = [line for line in table.splitlines() if line.endswith("ok")]
    assert [re.split(r"\s{2,}", row)[:2] for row in rows] == [[name, target.name] for name in KERNELS]
    shown = capsys.readouterr().out
    assert table in shown
    for number, picture in enumerate(PICTURES, start=2):
        assert f"[{number}/8] {picture} " in shown


def test_pictures_show_before_and_after(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    assert demo(tmp_path) == 0
    names = [f"{number}-{name}.png" for number, name in enumerate(PICTURES, start=1)]
    assert sorted(path.name for path in tmp_path.iterdir()) == [*names, "contact-sheet.png", "table.txt"]
    afters = []
    for name in names:
        with image.open(tmp_path / name) as opened:
            page = np.asarray(opened)
        before, after = page[-24 - 72 : -24, 24 : 24 + 72], page[-24 - 72 : -24, -24 - 72 : -24]
        assert np.ptp(before) > 50
        assert not np.array_equal(before, after)
        afters.append(after)
        if len(afters) > 1:
            np.testing.assert_array_equal(before, afters[-2])
    with image.open(tmp_path / "contact-sheet.png") as sheet:
        assert sheet.height > sheet.width > 1000


def test_a_wrong_result_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    changed = Path(shutil.copytree(workbench.KERNELS, tmp_path / "kernels"))
    source = (changed / "sharpen.cu").read_text()
    assert source.count("float tap = taps[k + RADIUS];") == 1
    (changed / "sharpen.cu").write_text(
        source.replace("float tap = taps[k + RADIUS];", "float tap = 1.001f * taps[k + RADIUS];")
    )
    monkeypatch.setattr(workbench, "KERNELS", changed)
    assert demo(tmp_path) == 1
    shown = capsys.readouterr()
    assert "WRONG RESULT: convolve<ROWS>, convolve<COLUMNS>" in shown.out
    assert "WRONG RESULT" in shown.err
    table = (tmp_path / "table.txt").read_text()
    assert [line.split()[0] for line in table.splitlines() if line.endswith("WRONG")] == [
        "convolve<ROWS>",
        "convolve<COLUMNS>",
    ]


def test_a_picture_of_ones_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("PIL.Image")
    shades = np.linspace(0, 255, 90 * 120).reshape(90, 120, 1).repeat(3, axis=2)
    write_png(tmp_path / "own.png", shades.astype(np.uint8))
    assert demo(tmp_path, "--image", str(tmp_path / "own.png")) == 0
    assert "own.png, cropped to 72 x 72" in capsys.readouterr().out


def test_a_black_picture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing may be divided by zero: the result is black, not NaN."""
    pytest.importorskip("PIL.Image")
    write_png(tmp_path / "black.png", np.zeros((80, 80, 3), np.uint8))
    assert demo(tmp_path, "--image", str(tmp_path / "black.png")) == 0, capsys.readouterr().out
