"""Make the page "CUDA C++ on the CPU target" from the table of device names.

python tools/device_names_page.py            # writes the page
python tools/device_names_page.py --check    # says whether it is current
"""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path
from string import Template

from gridstride.targets.cpu.device_names import Section, sections
from gridstride.targets.cpu.ptx import mnemonics

_ROOT = Path(__file__).parents[1]
PAGE = _ROOT / "docs" / "reference" / "cuda-cpp.md"
_TEMPLATE = Path(__file__).with_suffix(".md")
_WIDTH = 118


def page() -> str:
    """Return the text of the page."""
    return Template(_TEMPLATE.read_text()).substitute(
        summary=_summary(),
        sections="\n".join(map(_section, sections())).rstrip(),
        instructions=_listed(mnemonics()),
    )


def _summary() -> str:
    rows = [
        f"| [{section.title}](#{section.key}) | {len(section.names)} | {len(section.supported())} |"
        for section in sections()
    ]
    return "\n".join(["| section | names | on the CPU target |", "| --- | ---: | ---: |", *rows])


def _section(section: Section) -> str:
    parts = [f"## {section.title} {{ #{section.key} }}", ""]
    if section.reason:
        parts += [f"Refused: {section.reason}.", ""]
        parts += [f"Headers refused: {_listed(section.headers)}.", ""] if section.headers else []
        parts += [_listed(section.names), ""] if section.names else []
    else:
        parts += [_listed(section.supported()), ""]
        parts += [f"- `{name}` is refused: {reason}." for name, reason in section.refused.items()]
        parts += [""] if section.refused else []
    if section.absent_on_cuda:
        parts += [
            f"- {'All are' if name == '*' else f'`{name}` is'} absent on the CUDA target: {reason}."
            for name, reason in section.absent_on_cuda.items()
        ] + [""]
    return "\n".join(parts)


def _listed(names: tuple[str, ...]) -> str:
    return "\n".join(textwrap.wrap(" ".join(f"`{name}`" for name in names), _WIDTH, break_on_hyphens=False))


if __name__ == "__main__":
    if "--check" not in sys.argv:
        PAGE.write_text(page())
    elif PAGE.read_text() != page():
        raise SystemExit(f"{PAGE} is not current: run python {Path(__file__).relative_to(_ROOT)}")
