"""Kernels with planted faults: those that only look wrong are right, and no fault hangs or kills the interpreter."""

from __future__ import annotations

import os
import subprocess
import sys

import planted_faults
import pytest

import gridstride as gs
from gridstride.targets import registry

CASES = planted_faults.read_all()
_RUN_ALL = """
import sys
import numpy, gridstride, planted_faults
for case in planted_faults.read_all():
    if case.is_sound:
        continue
    try:
        planted_faults.run(case)
        outcome = "ended"
    except (gridstride.LaunchError, gridstride.CompileError, TypeError, ValueError) as error:
        outcome = type(error).__name__
    print(case.name, outcome, flush=True)
probe = next(case for case in planted_faults.read_all() if case.is_sound)
planted_faults.run(probe)
print("alive", flush=True)
"""


@pytest.mark.parametrize("case", [case for case in CASES if case.is_sound], ids=lambda case: case.name)
def test_sound_kernels_give_their_values_in_every_tier(case):
    taken = planted_faults.run(case)
    *faster, last = registry.get("cpu").tiers
    assert planted_faults.run(case, last) == {last}
    for tier in faster:
        if taken == {tier}:
            assert planted_faults.run(case, tier) == {tier}
        else:
            with pytest.raises(gs.CompileError, match=f"cannot run in tier '{tier}'"):
                planted_faults.run(case, tier)


def test_sound_kernels_are_there_for_every_tier():
    taken = set.union(*(planted_faults.run(case) for case in CASES if case.is_sound))
    assert taken == set(registry.get("cpu").tiers)


def test_no_fault_hangs_or_kills_the_interpreter():
    faulty = [case.name for case in CASES if not case.is_sound]
    assert len(faulty) > 30
    environment = os.environ | {
        "GRIDSTRIDE_LAUNCH_TIMEOUT": "2",
        "PYTHONPATH": os.pathsep.join(sys.path),
        "GRIDSTRIDE_TARGET": "cpu",
    }
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", _RUN_ALL],
        capture_output=True, text=True, timeout=200, env=environment, check=False,
    )  # fmt: skip
    lines = [line.split()[0] for line in done.stdout.splitlines() if line.strip()]
    assert [line for line in lines if line in faulty] == faulty, done.stdout + done.stderr[-3000:]
    assert lines[-1] == "alive"
    assert done.returncode == 0, done.stderr[-3000:]
