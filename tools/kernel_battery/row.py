"""What a row of the battery is: sources, what is added to them, and a check."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from kernel_battery.bench import Bench

Results = Mapping[str, np.ndarray]


class Source(NamedTuple):
    """A file of a public repository.

    Attributes
    ----------
    repository : str
        ``owner/name`` on GitHub.
    path : str
        Inside the repository; the folder of sources holds it at ``owner/name/path``.
    commit : str
        The one that was read.
    digest : str
        Of the tokens of its device part.
    """

    repository: str
    path: str
    commit: str
    digest: str = ""


class Row(NamedTuple):
    """Kernels that are run together.

    Attributes
    ----------
    key, title : str
    sources : tuple of Source
        Joined in this order; empty where the row has its text itself.
    kernels : int
        How many are launched, or refused.
    told : str
        The inputs and the check, for the page.
    check : callable
        It gets a `Bench`, runs the kernels, asserts what must come out, and returns it.
    before, after : str
        Text put around the sources: macros and types that their project defines elsewhere.
    without : tuple of str
        Items that are left out, by a word in them.
    cut : bool
        Whether host code is cut out; False for texts that are not plain CUDA C++.
    refused : str
        A pattern of the message that refuses it on the CPU target.
    tolerance : float
        Relative to the largest value of a result: how far apart targets and tiers may be; 0 for equal bits.
    alone : bool
        Whether it leaves a device unusable, so that it has a process of its own there.
    """

    key: str
    title: str
    sources: tuple[Source, ...]
    kernels: int
    told: str
    check: Callable[[Bench], Results]
    before: str = ""
    after: str = ""
    without: tuple[str, ...] = ()
    cut: bool = True
    refused: str = ""
    tolerance: float = 0.0
    alone: bool = False
