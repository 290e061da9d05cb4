"""Every device name that has a value gives it: at edges, at halfway cases, at numbers of all sizes."""

from __future__ import annotations

import pytest
from device_cases import case, sections


@pytest.mark.parametrize("section", sections.VALUES)
def test_values(xp, target, section):
    preamble, cases = sections.VALUES[section]
    if "gpu" in target.features:
        cases = sections.on_a_gpu(cases)
    case.run(xp, cases, preamble)
