"""Write words into pictures with a small font of our own, five pixels wide and seven high."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

Mask = npt.NDArray[np.bool_]

HEIGHT = 7
_WIDTH = 5
_ADVANCE = _WIDTH + 1


def lettering(text: str, scale: int = 1) -> Mask:
    """Draw one line of text.

    Parameters
    ----------
    text : str
        Letters are drawn as capitals; a character that the font lacks is left blank.
    scale : int
        The size of one pixel of the font.

    Returns
    -------
    array of bool, shape (7 * scale, 6 * len(text) * scale)
        True where there is ink.
    """
    glyphs = _glyphs()
    blank = np.zeros((HEIGHT, _WIDTH), bool)
    gap = np.zeros((HEIGHT, _ADVANCE - _WIDTH), bool)
    pieces: list[Mask] = [np.zeros((HEIGHT, 0), bool)]
    for character in text.upper():
        pieces += [glyphs.get(character, blank), gap]
    return np.kron(np.hstack(pieces), np.ones((scale, scale), bool))


def write(
    picture: npt.NDArray[Any], text: str, top: int, left: int, ink: tuple[float, ...], scale: int = 1
) -> None:
    """Write one line into a picture of shape (height, width, channels), cut off at its edges."""
    mask = lettering(text, scale)
    there = picture[top : top + mask.shape[0], left : left + mask.shape[1]]
    there[mask[: there.shape[0], : there.shape[1]]] = ink


@cache
def _glyphs() -> dict[str, Mask]:
    glyphs = {}
    for characters, *rows in (block.splitlines() for block in _FONT.strip("\n").split("\n\n")):
        ink = np.array([list(row.ljust(_ADVANCE * len(characters))) for row in rows]) == "#"
        for position, character in enumerate(characters):
            left = _ADVANCE * position
            glyphs[character] = ink[:, left : left + _WIDTH]
    return glyphs


_FONT = """
ABCDEFGHIJ
 ###  ####   ###  ####  ##### #####  ###  #   #  ###    ###
#   # #   # #   # #   # #     #     #   # #   #   #      #
#   # #   # #     #   # #     #     #     #   #   #      #
##### ####  #     #   # ####  ####  # ### #####   #      #
#   # #   # #     #   # #     #     #   # #   #   #      #
#   # #   # #   # #   # #     #     #   # #   #   #   #  #
#   # ####   ###  ####  ##### #      ###  #   #  ###   ##

KLMNOPQRST
#   # #     #   # #   #  ###  ####   ###  ####   #### #####
#  #  #     ## ## ##  # #   # #   # #   # #   # #       #
# #   #     # # # ##  # #   # #   # #   # #   # #       #
##    #     # # # # # # #   # ####  #   # ####   ###    #
# #   #     #   # #  ## #   # #     # # # # #       #   #
#  #  #     #   # #  ## #   # #     #  #  #  #      #   #
#   # ##### #   # #   #  ###  #      ## # #   # ####    #

UVWXYZ.,:+
#   # #   # #   # #   # #   # #####
#   # #   # #   # #   # #   #     #               ##    #
#   # #   # #   #  # #   # #     #                ##    #
#   # #   # # # #   #     #     #                     #####
#   # #   # # # #  # #    #    #                  ##    #
#   #  # #  ## ## #   #   #   #      ##    ##     ##    #
 ###    #   #   # #   #   #   #####  ##    #

0123456789
 ###    #    ###  #####    #  #####  ###  #####  ###   ###
#   #  ##   #   #    #    ##  #     #     #   # #   # #   #
#  ##   #       #   #    # #  ####  #         # #   # #   #
# # #   #      #     #  #  #      # ####     #   ###   ####
##  #   #     #       # #####     # #   #   #   #   #     #
#   #   #    #    #   #    #  #   # #   #   #   #   #     #
 ###   ###  #####  ###     #   ###   ###    #    ###   ###

-/%()=_<>*
          # ##  #    #   #                   #   #
          # ##  #   #     #                 #     #   # # #
         #     #   #       #  #####        #       #   ###
#####   #     #    #       #              #         # #####
       #     #     #       #  #####        #       #   ###
      #     #  ##   #     #                 #     #   # # #
      #     #  ##    #   #          #####    #   #
"""
