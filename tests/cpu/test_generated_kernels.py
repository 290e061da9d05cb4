"""Generated kernels give the same bits however the CPU target runs them."""

from __future__ import annotations

from collections import Counter

import pytest
from generated_kernels import FEATURES, Batch, generate_batch
from generated_kernels.running import difference, run_batch

import gridstride as gs

#: Seeds of the batches for every run of the tests, and for the long one: 2000 kernels.
SHORT, SOAK = range(1, 4), range(100, 150)
SHORT_KERNELS, SOAK_KERNELS = 25, 40
#: The plainest way: each operation as written, hardly optimized.
PLAIN = ("--fmad=false", "-O1")
OPTIMIZED = ("--fmad=false",)


@pytest.fixture(autouse=True)
def _on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRIDSTRIDE_TARGET", "cpu")


@pytest.mark.parametrize("seed", SHORT)
def test_optimized_code_agrees_with_plain_code(seed: int) -> None:
    compare(generate_batch(seed, SHORT_KERNELS))


@pytest.mark.soak
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", SOAK)
def test_optimized_code_agrees_with_plain_code_for_long(seed: int) -> None:
    compare(generate_batch(seed, SOAK_KERNELS))


def compare(batch: Batch) -> None:
    ways = [
        run_batch(gs.RawModule(code=batch.text, options=options), batch) for options in (PLAIN, OPTIMIZED)
    ]
    found = [difference(kernel, *results) for kernel, *results in zip(batch.kernels, *ways, strict=True)]
    different = [str(each) for each in found if each is not None]
    assert not different, f"{len(different)} kernels of seed {batch.seed}\n" + "\n".join(different)


def test_every_feature_is_in_a_tenth_of_the_kernels() -> None:
    batches = [generate_batch(seed, SOAK_KERNELS) for seed in SOAK]
    kernels = [kernel for batch in batches for kernel in batch.kernels]
    counted = Counter(feature for kernel in kernels for feature in kernel.features)
    assert set(counted) == set(FEATURES)
    rare = {feature: count for feature, count in counted.items() if count < len(kernels) / 10}
    assert not rare


def test_a_seed_determines_a_batch() -> None:
    assert generate_batch(7, 5) == generate_batch(7, 5)
    assert generate_batch(7, 5).text != generate_batch(8, 5).text


def test_a_difference_is_found_and_shown() -> None:
    batch = generate_batch(7, 1)
    module = gs.RawModule(code=batch.text, options=OPTIMIZED)
    first, second = next(run_batch(module, batch)), next(run_batch(module, batch))
    assert difference(batch.kernels[0], first, second) is None
    name = next(name for name in first if name.startswith("out_"))
    second[name][3] += 1
    found = difference(batch.kernels[0], first, second)
    assert found is not None
    assert (found.output, found.count, found.index) == (name, 1, 3)
    assert batch.kernels[0].text in str(found)
