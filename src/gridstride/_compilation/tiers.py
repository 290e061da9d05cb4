"""Tiers: the ways in which a target can run a kernel, which of them was taken, and what kept it from a faster one."""

from __future__ import annotations

from typing import NamedTuple

from gridstride._compilation.functions import LoadedFunction
from gridstride.errors import CompileError
from gridstride.targets.base import Program, Target, TierObstacle


class Explanation(NamedTuple):
    """Say how a kernel runs; ``print`` shows it.

    Attributes
    ----------
    kernel : str
    target : str
    tier : str
        The tier that was taken.
    obstacles : tuple of TierObstacle
        What kept it from faster tiers: `tier`, `reason`, `path` and `line` (0 where there is none).
    """

    kernel: str
    target: str
    tier: str
    obstacles: tuple[TierObstacle, ...]

    def __str__(self) -> str:
        lines = [f"kernel {self.kernel!r} on target {self.target!r}: tier {self.tier!r}"]
        return "\n  ".join([*lines, *(f"not {item.tier!r}: {_told(item)}" for item in self.obstacles)])

    def __repr__(self) -> str:
        return str(self)


def explain(target: Target, loaded: LoadedFunction) -> Explanation:
    """Return how a function runs on its target."""
    return Explanation(loaded.name, target.name, loaded.tier or target.tiers[-1], loaded.obstacles)


def chosen_tier(program: Program, target: Target) -> str:
    """Return the tier that a program, or else a setting of the target, asks for; "" for the fastest.

    Raises
    ------
    ValueError
        The target has no such tier.
    """
    if program.tier and program.tier not in target.tiers:
        raise ValueError(
            f"{program.name}: tier {program.tier!r} is none of target {target.name!r}, "
            f"which has {', '.join(map(repr, target.tiers))}"
        )
    return program.tier or target.chosen_tier()


def check_tier(program: Program, loaded: LoadedFunction) -> None:
    """Raise `CompileError` where a kernel does not run in the tier that was asked for."""
    if not program.tier or not loaded.tier or loaded.tier == program.tier:
        return
    found = [item for item in loaded.obstacles if item.tier == program.tier]
    reason = "; ".join(map(_told, found)) or "it is not admissible"
    raise CompileError(
        f"kernel `{loaded.name}` cannot run in tier {program.tier!r}, which was asked for: {reason}. "
        f"Without tier= (and GRIDSTRIDE_CPU_TIER) it runs in tier {loaded.tier!r}",
        name=loaded.name,
        source=program.text,
    )


def _told(obstacle: TierObstacle) -> str:
    return f"{obstacle.reason} ({obstacle.path}:{obstacle.line})" if obstacle.line else obstacle.reason
