"""Launch configurations: from what users write to checked numbers."""

import numpy as np
import pytest

from gridstride._launch.configuration import check_configuration, launch_configuration
from gridstride.targets.base import FunctionAttributes, LaunchConfig
from gridstride.targets.null import create

LIMITS = create().limits(0)
ATTRIBUTES = FunctionAttributes(max_threads_per_block=1024, shared_size_bytes=100)


@pytest.mark.parametrize(
    ("grid", "block", "expected"),
    [
        (3, 4, ((3, 1, 1), (4, 1, 1))),
        ((3,), (4,), ((3, 1, 1), (4, 1, 1))),
        ((3, 2), [4, 5, 6], ((3, 2, 1), (4, 5, 6))),
        (np.int64(3), (np.int32(4), 2), ((3, 1, 1), (4, 2, 1))),
        (np.array([3, 2]), 1, ((3, 2, 1), (1, 1, 1))),
    ],
)
def test_forms(grid, block, expected):
    configuration = launch_configuration("k", grid, block, 8, cooperative=False)
    assert configuration == LaunchConfig(*expected, 8)


@pytest.mark.parametrize(
    ("grid", "block", "kind", "words"),
    [
        ((0,), (1,), ValueError, "grid must be at least 1"),
        ((1,), (-1,), ValueError, "block must be at least 1"),
        ((), (1,), ValueError, "1 to 3 numbers"),
        ((1, 1, 1, 1), (1,), ValueError, "1 to 3 numbers"),
        (1.5, (1,), TypeError, "int or a tuple of ints"),
        ((1.0,), (1,), TypeError, "int or a tuple of ints"),
        (None, (1,), TypeError, "int or a tuple of ints"),
        ("2", (1,), TypeError, "int or a tuple of ints"),
    ],
)
def test_bad_dimensions(grid, block, kind, words):
    with pytest.raises(kind, match=words):
        launch_configuration("k", grid, block, 0, cooperative=False)


@pytest.mark.parametrize(("shared_mem", "kind"), [(-1, ValueError), (2**32, ValueError), (1.5, TypeError)])
def test_bad_shared_memory(shared_mem, kind):
    with pytest.raises(kind, match="shared_mem"):
        launch_configuration("k", 1, 1, shared_mem, cooperative=False)


@pytest.mark.parametrize(
    ("configuration", "words"),
    [
        (LaunchConfig((1, 1, 1), (1025, 1, 1)), r"block.x = 1025 is beyond the device's 1024"),
        (LaunchConfig((1, 1, 1), (1, 1, 65)), r"block.z = 65"),
        (LaunchConfig((1, 65536, 1), (1, 1, 1)), r"grid.y = 65536 is beyond the device's 65535"),
        (LaunchConfig((2**31, 1, 1), (1, 1, 1)), r"grid.x"),
        (LaunchConfig((1, 1, 1), (32, 32, 2)), r"2048 threads is beyond the device's 1024"),
        (LaunchConfig((1, 1, 1), (1, 1, 1), 232448 - 99), r"232349 bytes of dynamic and 100 bytes of static"),
    ],
)
def test_limits_come_with_the_numbers(configuration, words):
    with pytest.raises(ValueError, match=words):
        check_configuration("k", configuration, LIMITS, ATTRIBUTES)


def test_the_largest_configuration_passes():
    check_configuration(
        "k", LaunchConfig((2**31 - 1, 65535, 65535), (1024, 1, 1), 232448 - 100), LIMITS, ATTRIBUTES
    )


def test_swapped_grid_and_block_get_a_hint():
    with pytest.raises(ValueError, match="swapped"):
        check_configuration("k", LaunchConfig((256, 1, 1), (4096, 1, 1)), LIMITS, ATTRIBUTES)
    with pytest.raises(ValueError) as error:
        check_configuration("k", LaunchConfig((4096, 1, 1), (4096, 1, 1)), LIMITS, ATTRIBUTES)
    assert "swapped" not in str(error.value)


def test_kernel_limit():
    attributes = FunctionAttributes(max_threads_per_block=256, shared_size_bytes=0)
    with pytest.raises(ValueError, match="256 that this kernel can have"):
        check_configuration("k", LaunchConfig((1, 1, 1), (512, 1, 1)), LIMITS, attributes)
