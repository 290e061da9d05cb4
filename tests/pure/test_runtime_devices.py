"""Devices, and what is current for each thread."""

import pickle
import threading

import pytest
from fake_target import FakeTarget, make_default

from gridstride import cuda
from gridstride._runtime.current import on_device
from gridstride.errors import CUDAError
from gridstride.targets import registry

pytestmark = pytest.mark.usefixtures("each_way")


@pytest.fixture
def fake(monkeypatch):
    target = FakeTarget(devices=3)
    make_default(monkeypatch, target)
    return target


def test_a_block_makes_a_device_current_and_puts_back_the_former(fake):
    with cuda.Device(1) as device:
        assert (device.id, cuda.get_device_id()) == (1, 1)
        with cuda.Device(2):
            assert cuda.get_device_id() == 2
        assert cuda.get_device_id() == 1
    assert cuda.get_device_id() == 0


def test_leaving_by_an_exception_puts_back_the_former(fake):
    with pytest.raises(KeyError), cuda.Device(1), cuda.Device(2):
        raise KeyError
    assert cuda.get_device_id() == 0


def test_p46_leaving_puts_back_what_was_current_on_entry(fake):
    with cuda.Device(1):
        cuda.Device(0).use()
        with cuda.Device(1):
            pass
        assert cuda.get_device_id() == 0
        fake.set_device(2)  # as another library would
        with cuda.Device(1):
            fake.set_device(0)
        assert cuda.get_device_id() == 2
    assert cuda.get_device_id() == 0


def test_one_object_can_be_entered_again(fake):
    device = cuda.Device(1)
    with device:
        cuda.set_device(2)
        with device:
            assert cuda.get_device_id() == 1
        assert cuda.get_device_id() == 2
    assert cuda.get_device_id() == 0


def test_p44_threads_that_interleave_return_to_their_own_devices(fake):
    device, steps = cuda.Device(2), threading.Barrier(2)
    after = {}

    def enter_and_leave(own, early):
        cuda.set_device(own)
        if not early:
            steps.wait(10)
        with device:
            if early:
                steps.wait(10)  # the other thread enters the same object now
            steps.wait(10)
            if not early:
                steps.wait(10)  # the other thread has left
        if early:
            steps.wait(10)
        after[own] = cuda.get_device_id()

    threads = [threading.Thread(target=enter_and_leave, args=pair) for pair in ((0, True), (1, False))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert after == {0: 0, 1: 1}
    assert cuda.get_device_id() == 0


def test_on_device_asks_the_target(fake):
    fake.set_device(2)
    with on_device(fake, 1):
        assert fake.current_device() == 1
        with on_device(fake, 1):
            pass
        assert fake.current_device() == 1
    assert fake.current_device() == 2
    fake.set_device(0)
    with pytest.raises(ZeroDivisionError), on_device(fake, 2):
        raise ZeroDivisionError
    assert fake.current_device() == 0


@pytest.mark.parametrize("index", [3, -1])
def test_a_missing_device_is_an_error_with_the_count(fake, index):
    with pytest.raises(CUDAError, match="there are 3 devices") as caught:
        cuda.Device(index)
    assert (caught.value.name, caught.value.code) == ("CUDA_ERROR_INVALID_DEVICE", 101)
    assert cuda.get_device_id() == 0


def test_a_second_device_without_a_gpu_can_be_asked_for(monkeypatch):
    target = FakeTarget(devices=1)
    target.features = frozenset({"devices on request"})
    make_default(monkeypatch, target)
    with pytest.raises(CUDAError, match=r"there is 1 device.*GRIDSTRIDE_CPU_DEVICES=2"):
        cuda.set_device(1)
    target.features = frozenset({"gpu"})
    with pytest.raises(CUDAError) as caught:
        cuda.set_device(1)
    assert "GRIDSTRIDE_CPU_DEVICES" not in str(caught.value)


def test_devices_compare_by_target_and_index(fake):
    assert cuda.Device(1) == cuda.Device(1) == cuda.Device(cuda.Device(1))
    assert cuda.Device(1) != cuda.Device(2)
    assert cuda.Device(1) != 1
    assert cuda.Device(1) != cuda.Device(1, target=FakeTarget())
    assert len({cuda.Device(1), cuda.Device(1), cuda.Device(0)}) == 2
    assert [10, 20, 30][cuda.Device(1)] == 20
    assert cuda.Device() == cuda.Device(0)


def test_a_device_is_pickled_by_name():
    null = cuda.Device(0, target=registry.get("null"))
    assert pickle.loads(pickle.dumps(null)) == null


def test_a_device_says_its_numbers(fake):
    device = cuda.Device(1)
    limits = fake.limits(1)
    assert (device.name, device.compute_capability) == (limits.name, "90")
    assert device.attributes["MaxThreadsPerBlock"] == limits.max_threads_per_block
    assert device.attributes["MaxGridDimX"] == limits.max_grid[0]
    assert device.mem_info == cuda.runtime.memGetInfo() == fake.memory_info(0)
    assert cuda.runtime.getDeviceCount() == 3


def test_synchronizing_waits_for_the_right_device(fake):
    cuda.Device(2).synchronize()
    with cuda.Device(1):
        cuda.synchronize()
        cuda.runtime.deviceSynchronize()
    assert fake.made("synchronize") == [("synchronize", 2), ("synchronize", 1), ("synchronize", 1)]
