"""The table of CUDA's device names: which ones this target has, and why not the others."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

TABLE = Path(__file__).with_name("device_names.toml")


class Section(NamedTuple):
    """A part of the table.

    Attributes
    ----------
    key, title : str
    reason : str
        Why all of its names are refused; empty for a section that is supported.
    names : tuple of str
        As they are written in a program, with their namespaces.
    refused : mapping of name to reason
        The names that are refused in a section that is supported.
    absent_on_cuda : mapping of name to reason
        The names that programs for compute capability 9.0 do not have.
    headers : tuple of str
        The headers of a refused section, which are refused as well.
    """

    key: str
    title: str
    reason: str
    names: tuple[str, ...]
    refused: Mapping[str, str]
    absent_on_cuda: Mapping[str, str]
    headers: tuple[str, ...]

    def refusal(self, name: str) -> str:
        """Return why a name is refused; empty for one that is supported."""
        return self.reason or self.refused.get(name, "")

    def supported(self) -> tuple[str, ...]:
        """Return the names that this target has."""
        return tuple(name for name in self.names if not self.refusal(name))


@cache
def sections() -> tuple[Section, ...]:
    """Return the table."""
    return tuple(
        Section(
            section["key"],
            section["title"],
            section.get("reason", ""),
            tuple((section["names"] + " " + section.get("more", "")).split()),
            section.get("refused", {}),
            section.get("absent_on_cuda", {}),
            tuple(section.get("headers", ())),
        )
        for section in tomllib.loads(TABLE.read_text())["section"]
    )


@cache
def refusals() -> Mapping[str, str]:
    """Return why names and headers are refused, by the last part of a name or the name of a header.

    A name that another section supports is not among them.
    """
    has = {name.rpartition("::")[2] for section in sections() for name in section.supported()}
    refused = {
        name.rpartition("::")[2]: section.refusal(name)
        for section in sections()
        for name in section.names
        if section.refusal(name)
    }
    headers = {header: section.reason for section in sections() for header in section.headers}
    return {name: reason for name, reason in refused.items() if name not in has} | headers
