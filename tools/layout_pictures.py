"""Draw the pictures of layout classes in the guides: ``python tools/layout_pictures.py``.

Pictures have a background of their own, so that they are read on light and dark pages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "docs" / "guides" / "pictures"
CELL, GAP, PANEL = 26, 36, 20
INK, FAINT, LINE, PAPER, EMPTY = "#1f2937", "#4b5563", "#94a3b8", "#ffffff", "#f1f5f9"
MARKED, REPEATED = "#93c5fd", "#e2e8f0"
FOLDS = ("#93c5fd", "#fcd34d", "#86efac", "#f9a8d4")
ROWS, COLUMNS = 4, 4

#: The number that stands in a cell, and its color.
Cell = tuple[str, str]
Grid = Sequence[Sequence[Cell]]


class Panel:
    """One class: its title, what it is, and the grids that follow from each other, with their names."""

    def __init__(self, title: str, caption: str, **grids: Grid) -> None:
        self.title, self.caption, self.grids = title, caption, grids

    @property
    def width(self) -> int:
        """In pixels."""
        cells = sum(len(grid[0]) for grid in self.grids.values())
        return cells * CELL + GAP * (len(self.grids) - 1)


def numbered(number: Callable[[int, int], int], color: Callable[[int, int], str]) -> Grid:
    """Return a grid of memory numbers."""
    return [[(str(number(i, j)), color(i, j)) for j in range(COLUMNS)] for i in range(ROWS)]


def first_row(i: int, j: int) -> str:
    """Mark what one thread takes at once."""
    return MARKED if i == 0 else EMPTY


def elementwise() -> list[Panel]:
    """Return the layout classes of an input x beside an output z."""
    z = numbered(lambda i, j: 4 * i + j, first_row)
    square = numbered(lambda i, j: 4 * i + j, lambda i, j: MARKED if i < 2 and j < 2 else EMPTY)
    turned = numbered(lambda i, j: 4 * j + i, lambda i, j: MARKED if i < 2 and j < 2 else EMPTY)
    repeated = numbered(lambda i, j: j, lambda i, j: MARKED if i == 0 else REPEATED)
    permuted = numbered(
        lambda i, j: 8 * (i // 2) + 4 * (j // 2) + 2 * (i % 2) + j % 2,
        lambda i, j: MARKED if i < 2 else EMPTY,
    )
    two_rows = numbered(lambda i, j: 4 * i + j, lambda i, j: MARKED if i < 2 else EMPTY)
    columns = numbered(lambda i, j: i, lambda i, j: (MARKED if i == 0 else EMPTY) if j == 0 else REPEATED)
    return [
        Panel("contiguous", "all axes become one", x=z, z=z),
        Panel("rows", "one row for all rows", x=repeated, z=z),
        Panel("columns", "one number for each row", x=columns, z=z),
        Panel("steps", "every second element", x=numbered(lambda i, j: 8 * i + 2 * j, first_row), z=z),
        Panel("turned", "exchanged as tiles", x=turned, z=square),
        Panel("permuted", "several axes exchanged", x=permuted, z=two_rows),
    ]


def folded(color: Callable[[int, int], int]) -> Grid:
    """Return a grid whose cells have the color of the result they go to."""
    return [[("", FOLDS[color(i, j)]) for j in range(COLUMNS)] for i in range(ROWS)]


def reductions() -> list[Panel]:
    """Return the ways in which elements are folded."""
    of_rows = [[("", color)] for color in FOLDS[:ROWS]]
    parts = [[(str(k + 1), color)] for k, color in enumerate(FOLDS[:ROWS])]
    of_blocks = [[("", color) for color in FOLDS[k : k + 2]] for k in (0, 2)]
    side_by_side, one = [[("", color) for color in FOLDS]], [[("", FOLDS[0])]]
    return [
        Panel("along rows", "axis=1: packets of a row", elements=folded(lambda i, j: i), results=of_rows),
        Panel(
            "across rows",
            "axis=0: columns side by side",
            elements=folded(lambda i, j: j),
            results=side_by_side,
        ),
        Panel(
            "several axes",
            "axis=(1, 3) of four axes",
            elements=folded(lambda i, j: 2 * (i // 2) + j // 2),
            results=of_blocks,
        ),
        Panel("everything", "axis=None", elements=folded(lambda i, j: 0), result=one),
        Panel(
            "few results",
            "parts are joined afterwards",
            elements=folded(lambda i, j: i),
            parts=parts,
            result=one,
        ),
    ]


def drawn_grid(grid: Grid, left: int, top: int) -> Iterator[str]:
    """Yield the rectangles of a grid and the numbers in them."""
    for i, row in enumerate(grid):
        for j, (text, color) in enumerate(row):
            x, y = left + j * CELL, top + i * CELL
            yield (
                f'<rect x="{x}" y="{y}" width="{CELL}" height="{CELL}" fill="{color}" '
                f'stroke="{PAPER}" stroke-width="2" rx="4"/>'
            )
            if text:
                yield f'<text x="{x + CELL // 2}" y="{y + 16}" text-anchor="middle" fill="{INK}">{text}</text>'


def drawn_panel(panel: Panel, left: int, top: int) -> Iterator[str]:
    """Yield what a panel shows."""
    yield f'<text x="{left}" y="{top}" font-weight="bold" fill="{INK}">{panel.title}</text>'
    yield f'<text x="{left}" y="{top + ROWS * CELL + 52}" fill="{FAINT}">{panel.caption}</text>'
    middle = top + 34 + ROWS * CELL // 2
    for k, (name, grid) in enumerate(panel.grids.items()):
        if k:
            yield (
                f'<path d="M{left - GAP + 8} {middle}h{GAP - 18}m-5 -4l5 4l-5 4" fill="none" stroke="{LINE}" '
                f'stroke-width="2"/>'
            )
        yield f'<text x="{left}" y="{top + 24}" fill="{FAINT}">{name}</text>'
        yield from drawn_grid(grid, left, middle - len(grid) * CELL // 2)
        left += len(grid[0]) * CELL + GAP


def drawn(panels: Sequence[Panel], description: str) -> str:
    """Return a picture of panels, three beside each other."""
    column, row = max(panel.width for panel in panels) + 2 * PANEL, ROWS * CELL + 90
    width, height = 3 * column, -(-len(panels) // 3) * row + PANEL
    parts = [
        part
        for k, panel in enumerate(panels)
        for part in drawn_panel(panel, k % 3 * column + PANEL, k // 3 * row + 30)
    ]
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" role="img" '
        f'font-family="system-ui, sans-serif" font-size="13">'
    )
    paper = f'<rect width="{width}" height="{height}" rx="8" fill="{PAPER}" stroke="{LINE}"/>'
    return "\n".join([head, f"<title>{description}</title>", paper, *parts, "</svg>\n"])


def pictures() -> dict[str, str]:
    """Return each picture by the name of its file."""
    return {
        "elementwise-layouts.svg": drawn(elementwise(), "Layout classes of elementwise kernels"),
        "reduction-layouts.svg": drawn(reductions(), "How reductions fold their elements"),
    }


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, text in pictures().items():
        (FOLDER / name).write_text(text)
