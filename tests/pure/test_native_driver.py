"""Functions of a driver called without ctypes: compiled, and as the stand-in."""

import ctypes

import pytest

from gridstride import _native
from gridstride._native import stand_in

Called = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_uint64] * 5)
KINDS = [_native.DriverFunction, stand_in.DriverFunction]


def address(function):
    return ctypes.cast(function, ctypes.c_void_p).value


@pytest.mark.parametrize("kind", KINDS)
def test_values_go_in_and_nothing_comes_out(kind):
    seen = []
    c_function = Called(lambda *values: seen.append(values) or 0)
    call = kind(address(c_function), False, pytest.fail).call
    assert call(1, None, (1 << 64) - 1) is None
    assert call() is None
    assert seen == [(1, 0, (1 << 64) - 1, 0, 0), (0,) * 5]


@pytest.mark.parametrize("kind", KINDS)
def test_a_result_is_what_is_written_behind_the_first_argument(kind):
    def write(place, value, *_):
        ctypes.c_uint64.from_address(place).value = 2 * value
        return 0

    c_function = Called(write)
    assert kind(address(c_function), True, pytest.fail).call(21) == 42


@pytest.mark.parametrize("kind", KINDS)
def test_bytes_are_given_by_their_address_with_a_nul_behind_them(kind):
    seen = []
    c_function = Called(lambda place, size, *_: seen.append(ctypes.string_at(place, size)) or 0)
    kind(address(c_function), False, pytest.fail).call(b"a\0b", 4)
    assert seen == [b"a\0b\0"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("has_result", [False, True])
def test_a_code_goes_to_the_function_for_failures(kind, has_result):
    def fail(code):
        if code == 600:
            return False
        raise KeyError(code)

    c_function = Called(lambda *values: values[has_result])
    call = kind(address(c_function), has_result, fail).call
    assert call(600) is False
    with pytest.raises(KeyError, match="7"):
        call(7)


@pytest.mark.parametrize("kind", KINDS)
def test_what_failed_for_something_missing_is_tried_once_more(kind):
    codes, failures = [201, 0, 201, 700], []
    c_function = Called(lambda *values: codes.pop(0))

    def fail(code):
        failures.append(code)
        return NotImplemented if code == 201 else code

    call = kind(address(c_function), False, fail).call
    assert call() is None
    assert call() == 700
    assert failures == [201, 201, 700]


@pytest.mark.parametrize("kind", KINDS)
def test_misuse(kind):
    c_function = Called(lambda *values: 0)
    call = kind(address(c_function), False, pytest.fail).call
    with pytest.raises(TypeError):
        call(1, 2, 3, 4, 5, 6)
    with pytest.raises((TypeError, ctypes.ArgumentError)):
        call("1")
