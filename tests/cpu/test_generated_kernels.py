"""Generated kernels give the same bits in every tier of the CPU target, and unsound passes are found out."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from generated_kernels import FEATURES, Batch, generate_batch, generate_cooperating, places_of_few
from generated_kernels.running import Difference, difference, run_batch
from generated_kernels.straight_line import SIZE, straight_line

import gridstride as gs
from gridstride._compilation.functions import forget_programs
from gridstride._syntax.parser import text_of
from gridstride.targets.cpu.flat import forms
from gridstride.targets.cpu.flat.linear import Leaf, LinearReader, wide
from gridstride.targets.cpu.toolchain import find_toolchain
from tests.crosses import in_soak

#: Seeds of the batches for every run of the tests, of which few kernels are taken, and for the long one: 2000 kernels.
SHORT, SOAK = range(1, 3), range(100, 150)
SHORT_KERNELS, SOAK_KERNELS = 20, 40
#: What an unsound pass must be found out with: 200 kernels.
PROBES, PROBE_KERNELS = range(1, 11), 20
#: The plainest way to run a kernel: a fiber for each thread, hardly optimized.
PLAIN = {"tier": "fibers", "options": ("--fmad=false", "-O1")}
FASTEST = {"options": ("--fmad=false",)}


@pytest.fixture(autouse=True)
def _on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRIDSTRIDE_TARGET", "cpu")


def test_tiers_agree_and_most_kernels_are_flat() -> None:
    batches = [few_of(generate_batch(seed, SHORT_KERNELS)) for seed in SHORT]
    assert not [each for batch in batches for each in differences(batch)]
    tiers = Counter(tier for batch in batches for tier in tiers_of(batch))
    assert tiers["flat"] >= sum(tiers.values()) / 2


@pytest.mark.soak
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", SOAK)
def test_tiers_agree_and_most_kernels_are_flat_for_long(seed: int) -> None:
    batch = generate_batch(seed, SOAK_KERNELS)
    assert not differences(batch)
    assert tiers_of(batch).count("flat") >= SOAK_KERNELS / 2


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_contraction_moves_no_bit_between_tiers(dtype: str) -> None:
    program = straight_line(dtype, 5, 30)
    operands = list(program.operands(6).values())
    results = []
    for tier in ("", "fibers"):
        module = gs.RawModule(code=program.text, tier=tier)
        outs = np.full((len(program.expressions), SIZE), 7, dtype)
        for k, out in enumerate(outs):
            module.get_function(f"kernel_{k}")((4,), (128,), (out, *operands, SIZE))
        results.append(outs)
    np.testing.assert_array_equal(*results)


def test_every_feature_is_in_a_tenth_of_the_kernels() -> None:
    kernels = [kernel for seed in SOAK for kernel in generate_batch(seed, SOAK_KERNELS).kernels]
    counted = Counter(feature for kernel in kernels for feature in kernel.features)
    assert set(counted) == set(FEATURES)
    assert not {feature: count for feature, count in counted.items() if count < len(kernels) / 10}


@pytest.fixture
def undefined_behavior_traps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compile kernels so that overflows, shifts and conversions without a defined result are illegal instructions."""
    compiler = find_toolchain()
    if compiler.kind != "gcc":
        pytest.skip("the checks are g++'s")
    script = tmp_path / "checking-g++"
    checks = "signed-integer-overflow,shift,integer-divide-by-zero,bounds"
    script.write_text(
        f'#!/bin/sh\nexec {shlex.join(compiler.command)} "$@" -fno-wrapv '
        f"-fsanitize={checks} -fsanitize-undefined-trap-on-error\n"
    )
    script.chmod(0o700)
    monkeypatch.setenv("GRIDSTRIDE_CXX", str(script))
    forget_programs()


@pytest.mark.usefixtures("undefined_behavior_traps")
def test_generated_kernels_are_defined() -> None:
    for seed in SHORT:
        for whole in (generate_batch(seed, SHORT_KERNELS), generate_cooperating(seed, SHORT_KERNELS).batch):
            batch = few_of(whole)
            assert len(list(run_batch(gs.RawModule(code=batch.text, **PLAIN), batch))) == len(batch.kernels)


@pytest.mark.usefixtures("undefined_behavior_traps")
@pytest.mark.parametrize("change", ["*x += 1;", "*x = 1 << *x;", "*x /= *x - 2147483647;"])
def test_undefined_kernels_are_found_out(change: str) -> None:
    kernel = gs.RawKernel(f'extern "C" __global__ void k(int* x) {{ {change} }}', "k", **PLAIN)
    with pytest.raises(gs.LaunchError, match="illegal instruction"):
        kernel((1,), (1,), (np.full(1, 2**31 - 1, "i4"),))


def test_a_seed_determines_a_batch() -> None:
    assert generate_batch(7, 5) == generate_batch(7, 5)
    assert generate_batch(7, 5).text != generate_batch(8, 5).text


def test_a_difference_is_found_and_shown() -> None:
    batch = generate_batch(7, 1)
    module = gs.RawModule(code=batch.text, **FASTEST)
    first, second = next(run_batch(module, batch)), next(run_batch(module, batch))
    assert difference(batch.kernels[0], first, second) is None
    name = next(name for name in first if name.startswith("out_"))
    second[name][3] += 1
    found = difference(batch.kernels[0], first, second)
    assert found is not None
    assert (found.output, found.count, found.index) == (name, 1, 3)
    assert batch.kernels[0].text in str(found)


# ---- unsound passes ----


def break_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """A ``break`` leaves another loop than the one it stands in."""
    _change_lane_bodies(monkeypatch, lambda body: re.sub(r"\bbreak;", "continue;", body))


def return_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """A ``return`` becomes the ``continue`` of a loop over threads, also within loops of the kernel."""
    _change_lane_bodies(
        monkeypatch, lambda body: "{ do " + re.sub(r"\breturn;", "continue;", body) + " while (0); }"
    )


def data_is_linear(monkeypatch: pytest.MonkeyPatch) -> None:
    """A guard that looks at an array is taken for one that holds between two threads if it holds for both."""
    read = LinearReader.read

    def read_elements(self: LinearReader, node: Any, depth: int = 0) -> Any:
        if node is not None and node.type == "subscript_expression":
            index = read(self, node.child_by_field_name("indices").named_children[0], depth + 1)
            if index is not None:
                return Leaf(f"{text_of(node.child_by_field_name('argument'))}[{wide(index)}]")
        return read(self, node, depth)

    monkeypatch.setattr(LinearReader, "read", read_elements)


def capitals_are_constants(monkeypatch: pytest.MonkeyPatch) -> None:
    """A local variable in capital letters is taken for a constant, here for its first value in the row."""
    read = LinearReader._name

    def read_capitals(self: LinearReader, name: str, depth: int) -> Any:
        definition = self._definitions.get(name)
        if name.isupper() and definition is not None:
            return Leaf(_computed_in_the_row(definition.value))
        return read(self, name, depth)

    monkeypatch.setattr(LinearReader, "_name", read_capitals)


def references_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is changed through a reference, a pointer or a function is taken to keep its first value."""
    monkeypatch.setattr(forms, "changed_names", lambda function, text: frozenset())


def unequal_is_convex(monkeypatch: pytest.MonkeyPatch) -> None:
    """A guard with a hole is taken for an interval."""
    monkeypatch.setattr(forms, "_CONVEX", forms._CONVEX | {"!="})


#: Unsound passes, each with the features of kernels that can show it.
MUTATIONS: dict[Callable[[pytest.MonkeyPatch], None], set[str]] = {
    break_goes_on: {"break"},
    return_goes_on: {"return in a loop"},
    data_is_linear: {"guard of data"},
    capitals_are_constants: {"guard of data"},
    references_change_nothing: {"index variable"},
    unequal_is_convex: {"scattered guard"},
}


@pytest.mark.parametrize(
    "mutation",
    # One takes as long as the others together.
    [*(each for each in MUTATIONS if each is not unequal_is_convex), *in_soak(unequal_is_convex)],
    ids=lambda mutation: mutation.__name__,
)
def test_an_unsound_pass_is_found_out_within_200_kernels(
    mutation: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # The caches know nothing of a pass that was changed in memory.
    monkeypatch.setenv("GRIDSTRIDE_CACHE_DIR", str(tmp_path))
    forget_programs()
    mutation(monkeypatch)
    try:
        assert any(differences(batch) for batch in probes(MUTATIONS[mutation]))
    finally:
        monkeypatch.undo()
        forget_programs()


def probes(features: set[str]) -> Iterator[Batch]:
    """Yield the kernels with a feature among the first 200, a few at a time."""
    for seed in PROBES:
        batch = generate_batch(seed, PROBE_KERNELS)
        chosen = (kernel for kernel in batch.kernels if features <= kernel.features)
        while few := tuple(islice(chosen, 5)):
            yield batch._replace(kernels=few)


def few_of(batch: Batch) -> Batch:
    return batch._replace(kernels=tuple(batch.kernels[place] for place in places_of_few(batch.kernels)))


def differences(batch: Batch) -> list[Difference]:
    """Return where the plainest and the fastest way to run kernels part."""
    ways = [run_batch(gs.RawModule(code=batch.text, **way), batch) for way in (PLAIN, FASTEST)]
    found = [difference(kernel, *results) for kernel, *results in zip(batch.kernels, *ways, strict=True)]
    return [each for each in found if each is not None]


def tiers_of(batch: Batch) -> list[str]:
    module = gs.RawModule(code=batch.text, **FASTEST)
    return [module.get_function(kernel.name).explain().tier for kernel in batch.kernels]


def _change_lane_bodies(monkeypatch: pytest.MonkeyPatch, change: Callable[[str], str]) -> None:
    lane_body = forms.FlatForm._lane_body
    monkeypatch.setattr(forms.FlatForm, "_lane_body", lambda self: change(lane_body(self)))


def _computed_in_the_row(value: Any) -> str:
    """Return a value as the functions around the body can compute it, where the index has no name."""
    return re.sub(r"\bi\b", "gridstride_global", f"({text_of(value)})")
