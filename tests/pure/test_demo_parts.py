"""Parts of the demonstration that need no target: scene, references, PNG files, lettering, progress, options."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import numpy as np
import pytest

from gridstride import cli
from gridstride.cli import demo
from gridstride.demo import album, reference, scene
from gridstride.demo.lettering import lettering, write
from gridstride.demo.png import write_png
from gridstride.demo.progress import Progress
from gridstride.demo.workbench import Measurement


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("shape", [(1, 1, 3), (7, 5, 3), (64, 200, 3)])
def test_png_files_are_read_back(tmp_path: Path, shape: tuple[int, ...]) -> None:
    image = pytest.importorskip("PIL.Image")
    pixels = np.random.default_rng(0).integers(0, 256, shape, np.uint8)
    write_png(tmp_path / "x.png", pixels)
    with image.open(tmp_path / "x.png") as opened:
        assert opened.mode == "RGB"
        np.testing.assert_array_equal(np.asarray(opened), pixels)


@pytest.mark.parametrize("pixels", [np.zeros((4, 4), np.uint8), np.zeros((4, 4, 3), np.float32)])
def test_png_files_take_pixels_only(tmp_path: Path, pixels: np.ndarray) -> None:
    with pytest.raises(ValueError, match="pixels must be uint8"):
        write_png(tmp_path / "x.png", pixels)
    assert not list(tmp_path.iterdir())


def test_lettering_has_ink_for_each_character() -> None:
    for character in "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.,:+-/%()=_<>*":
        assert lettering(character).any(), character
    assert not lettering(" ~").any()
    assert lettering("").shape == (7, 0)
    np.testing.assert_array_equal(lettering("a"), lettering("A"))
    np.testing.assert_array_equal(lettering("T", 2)[::2, ::2], lettering("T"))


def test_lettering_differs_between_characters() -> None:
    shapes = {
        lettering(character).tobytes() for character in "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.,:+-/%()=_<>*"
    }
    assert len(shapes) == 50


def test_writing_is_cut_off_at_the_edges() -> None:
    picture = np.zeros((10, 20, 3), np.uint8)
    write(picture, "HHHHHHH", 6, 3, (9, 8, 7))
    assert picture[6:, 3:].any()
    assert not picture[:6].any()
    assert not picture[:, :3].any()
    before = picture.copy()
    write(picture, "H", 2, 25, (1, 1, 1))
    np.testing.assert_array_equal(picture, before)


def test_the_scene_is_rich_and_always_the_same() -> None:
    first, second = scene.photograph(64), scene.photograph(64)
    np.testing.assert_array_equal(first, second)
    assert first.shape == (64, 64, 3)
    assert len(np.unique(first)) > 60
    red, _, blue = first.reshape(-1, 3).mean(axis=0)
    assert red > 1.2 * blue, "the lamp tints the picture"


@pytest.mark.parametrize("axis", [0, 1])
def test_correlation_without_scipy_gives_the_same(axis: int, monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(1).random((30, 23, 4))
    taps = np.random.default_rng(2).random(9)
    by_shifts = reference.correlate_by_shifts(values, taps, axis)
    pytest.importorskip("scipy.ndimage")
    np.testing.assert_allclose(by_shifts, reference.correlate(values, taps, axis), rtol=1e-12)
    monkeypatch.setitem(sys.modules, "scipy.ndimage", None)
    np.testing.assert_array_equal(by_shifts, reference.correlate(values, taps, axis))


def test_a_reaction_without_substance_stays_as_it_is() -> None:
    cells = np.stack([np.ones((8, 8)), np.zeros((8, 8))], axis=-1)
    rates = dict.fromkeys(
        ("diffusion_u", "diffusion_v", "feed_dark", "feed_bright", "kill_dark", "kill_bright"), 0.05
    )
    np.testing.assert_array_equal(reference.react(cells, np.zeros((8, 8)), rates, 3), cells)


def test_thumbnails_hold_means() -> None:
    picture = np.arange(6 * 6 * 3, dtype=np.uint8).reshape(6, 6, 3)
    shrunk = album._resized(picture, 3)
    np.testing.assert_array_equal(shrunk, np.rint(picture.reshape(3, 2, 3, 2, 3).mean(axis=(1, 3))))
    np.testing.assert_array_equal(album._resized(picture, 12)[::2, ::2], picture)


@pytest.mark.parametrize(
    ("error", "passed"), [(0.0, True), (1e-3, True), (2e-3, False), (float("nan"), False)]
)
def test_errors_beyond_the_tolerance_and_nan_fail(error: float, passed: bool) -> None:
    assert Measurement("k", 1, 1.0, 10, error, 1e-3).passed is passed


def test_progress_is_plain_lines_unless_on_a_terminal() -> None:
    plain, terminal = io.StringIO(), Terminal()
    for stream in (plain, terminal):
        progress = Progress(2, stream)
        progress.start("first")
        progress.update("half way")
        progress.finish("done")
    assert plain.getvalue().count("\n") == 1
    assert "\r" not in plain.getvalue()
    assert "half way" not in plain.getvalue()
    assert terminal.getvalue().count("\r") == 3
    assert "half way" in terminal.getvalue()
    assert terminal.getvalue().endswith("\n")


def test_options_of_the_command() -> None:
    default = demo._settings([])
    assert (default.size, default.steps, str(default.output)) == (1024, 400, "demo-output")
    quick = demo._settings(["--quick", "--steps", "7"])
    assert (quick.size, quick.steps) == (256, 7)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--size", "8"], "the size must be at least 64 pixels, got 8"),
        (["--steps", "0"], "the reaction must have at least 1 step, got 0"),
        (["--image", "missing.png"], "missing.png"),
    ],
)
def test_wrong_options_are_told_in_one_line(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GRIDSTRIDE_BACKEND", "numpy")
    assert cli.main(["demo", *arguments]) == 1
    told = capsys.readouterr().err
    assert message in told
    assert told.count("\n") == 1


def test_reading_an_image_without_pillow_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GRIDSTRIDE_BACKEND", "numpy")
    monkeypatch.setitem(sys.modules, "PIL", None)
    assert cli.main(["demo", "--output", str(tmp_path), "--image", "x.png"]) == 1
    assert "pip install 'gridstride[demo]'" in capsys.readouterr().err
