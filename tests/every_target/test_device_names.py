"""Every device name that has a value gives it: at edges, at halfway cases, at numbers of all sizes."""

from __future__ import annotations

import pytest
from device_cases import case, sections

from gridstride.targets.cpu import device_names


@pytest.mark.parametrize("section", sections.VALUES)
def test_values(xp, target, section):
    preamble, cases = sections.VALUES[section]
    absent = {name for part in device_names.sections() for name in part.absent_on_cuda}
    if "gpu" in target.features:
        cases = [item for item in cases if item.name not in absent]
    case.run(xp, cases, preamble)
