"""``gridstride run`` gives on each target what NumPy gives, and refuses what it should."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from gridstride import cli
from gridstride.targets.base import Target

KERNELS = r"""
#include <gridstride/view.h>
#ifndef STEP
#define STEP 1
#endif
__global__ void axpy(float a, const float* x, float* y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}

template <typename T>
__global__ void scale(T* x, T factor, long long n)
{
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i < n) x[i] *= factor;
}

__global__ void place(int* result, int width, int height)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < width && y < height) result[y * width + x] = 1000 * y + STEP * x;
}

__global__ void vectors(const float4* x, float4 shift, bool swap, float4* y)
{
    float4 v = x[threadIdx.x];
    y[threadIdx.x] = swap ? make_float4(v.w, v.z, v.y, v.x) : make_float4(v.x + shift.x, v.y, v.z, v.w + shift.w);
}

__global__ void transpose(gridstride::view<const double, 2> x, gridstride::view<double, 2> y)
{
    y(threadIdx.x, threadIdx.y) = x(threadIdx.y, threadIdx.x);
}

__global__ void configuration(int* where)
{
    extern __shared__ int memory[];
    memory[threadIdx.x] = blockDim.x;
    __syncthreads();
    if (threadIdx.x == 0) where[blockIdx.x] = memory[blockDim.x - 1] * 1000 + gridDim.x;
}

__global__ void nothing(const float* unused, int* result) { if (unused == nullptr) *result = 7; }
"""


@pytest.fixture
def kernels(target: Target, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("kernels.cu").write_text(KERNELS)
    return tmp_path


def run(*arguments: str) -> int:
    return cli.main(["run", *arguments])


def result(*arguments: str, name: str = "y") -> np.ndarray:
    """Return what a run saved of an array."""
    assert run(*arguments, "--out", f"{name}=result.npy") == 0
    return np.load("result.npy")


def test_files_numbers_and_names(kernels: Path, target: Target, capsys: pytest.CaptureFixture[str]) -> None:
    x = np.random.default_rng(1).random(1000, dtype=np.float32)
    np.save("x.npy", x)
    got = result("kernels.cu:axpy", "n=x.size", "a=-0.5", "x=x.npy", "y=full:2:n")
    np.testing.assert_array_equal(got, np.float32(-0.5) * x + 2)
    shown = capsys.readouterr().out
    assert shown.startswith(f"axpy on {target.name} (")
    assert "  grid 4, block 256, 1000 threads wanted\n" in shown
    assert f"min {got.min():.6g}" in shown
    assert "\x1b" not in shown


@pytest.mark.parametrize(("name", "dtype"), [("double", "f8"), ("unsigned short", "u2"), ("int", "i4")])
def test_templates_take_the_dtype_of_the_instance(kernels: Path, name: str, dtype: str) -> None:
    got = result(f"kernels.cu:scale<{name}>", "x=arange:300", "factor=3", "n=300", name="x")
    np.testing.assert_array_equal(got, 3 * np.arange(300, dtype=dtype), strict=True)


def test_two_axes_follow_from_the_array(kernels: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows, columns = np.mgrid[:7, :90].astype(np.int32)
    got = result(
        "kernels.cu:place", "result=zeros:7x90", "width=90", "height=7", "-D", "STEP=2", name="result"
    )
    np.testing.assert_array_equal(got, 1000 * rows + 2 * columns)
    assert "  grid 3x1, block 32x8, 90x7 threads wanted\n" in capsys.readouterr().out
    small = ("result=zeros:7,90", "width=90", "height=7", "--block", "5x3", "--size", "90x7")
    np.testing.assert_array_equal(result("kernels.cu:place", *small, name="result"), 1000 * rows + columns)


def test_vectors_and_flags(kernels: Path) -> None:
    np.save("x.npy", np.arange(32, dtype=np.float32).reshape(8, 4))
    shifted = result(
        "kernels.cu:vectors", "x=x.npy", "y=zeros:8", "shift=1,2,3,4", "swap=false", "--size=8", "--block=8"
    )
    np.testing.assert_array_equal(shifted, np.load("x.npy") + np.array([1, 0, 0, 4]))
    swapped = result(
        "kernels.cu:vectors", "x=x.npy", "y=zeros:8", "shift=0,0,0,0", "swap=true", "--grid=1", "--block=8"
    )
    np.testing.assert_array_equal(swapped, np.load("x.npy")[:, ::-1])


def test_views_take_strided_arrays(kernels: Path) -> None:
    got = result("kernels.cu:transpose", "x=random:3x5:-2..2", "y=zeros:5,3", "--grid=1", "--block=5x3")
    assert got.shape == (5, 3)
    assert (np.abs(got) <= 2).all()
    assert (got < 0).any()


def test_launch_configuration(kernels: Path) -> None:
    where = ("kernels.cu:configuration", "where=zeros:6")
    got = result(*where, "--grid=6", "--block=64", "--shared-mem=4*64", name="where")
    np.testing.assert_array_equal(got, np.full(6, 64006))
    got = result(*where, "--size=600", "--block=100", "--shared-mem=400", name="where")
    np.testing.assert_array_equal(got, np.full(6, 100006))


def test_null_pointers(kernels: Path) -> None:
    assert result("kernels.cu:nothing", "unused=null", "result=zeros:1", "--size=1", name="result") == 7


def test_random_arrays_repeat_with_the_seed(kernels: Path) -> None:
    def drawn(*more: str) -> np.ndarray:
        return result("kernels.cu:axpy", "a=0", "x=zeros", "n=size", "--size=5000", *more)

    first, second = drawn("y=random", "--seed=5"), drawn("y=random", "--seed=6")
    np.testing.assert_array_equal(first, drawn("y=random", "--seed=5"))
    assert (first != second).mean() > 0.99
    assert 0 <= first.min() < 0.01 < 0.99 < first.max() < 1
    bell = drawn("y=normal:100~15")
    assert abs(bell.mean() - 100) < 1.5
    assert abs(bell.std() - 15) < 1


def test_every_tier_can_be_asked_for(
    kernels: Path, target: Target, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("add.cu").write_text(
        "__global__ void add(const int* x, int* y) { y[threadIdx.x] += x[threadIdx.x]; }\n"
    )
    for tier in target.tiers:
        got = result("add.cu", "x=ones:100", "y=ones:100", "--grid=1", "--block=100", "--tier", tier)
        np.testing.assert_array_equal(got, np.full(100, 2))
        assert f"  tier {tier}\n" in capsys.readouterr().out


def test_results_are_those_of_the_first_launch(kernels: Path, capsys: pytest.CaptureFixture[str]) -> None:
    got = result("kernels.cu:axpy", "a=1", "x=ones:100", "y=zeros:100", "n=100", "--repeat=5")
    np.testing.assert_array_equal(got, np.ones(100))
    shown = capsys.readouterr().out
    assert "  5 more: min " in shown
    assert "GB/s at the median, counting x read, y written\n" in shown


def test_json(kernels: Path, target: Target, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("kernels.cu:axpy", "a=1", "x=ones:100", "y=ones:100", "n=100", "--repeat=3", "--json") == 0
    record = json.loads(capsys.readouterr().out)
    assert record["kernel"] == "axpy"
    assert record["target"] == target.name
    assert record["tier"] in target.tiers
    assert record["grid"] == [1]
    assert len(record["seconds"]) == 3
    assert min(record["seconds"]) > 0
    assert record["bytes"] == 1200
    assert record["written"] == {
        "y": {"dtype": "float32", "shape": [100], "min": 2.0, "mean": 2.0, "max": 2.0}
    }


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["kernels.cu"], "kernels.cu has 7 kernels; name one:\n  kernels.cu:axpy"),
        (["kernels.cu:axpi"], "did you mean axpy?"),
        (["kernels.cu:scale"], "scale is a template; name an instance of it, for example 'kernels.cu:scale<float>'"),
        (["missing.cu:axpy"], "there is no file 'missing.cu'"),
        (["kernels.cu:axpy"], "a=1 x=random:1000 y=random:1000 n=1000\n"),
        (["kernels.cu:axpy", "a=1"], "axpy needs values for x (const float *), y (float *), n (int)"),
        (["kernels.cu:axpy", "a=1", "b=2"], "no parameter 'b'"),
        (["kernels.cu:axpy", "a"], "'a' is not NAME=VALUE"),
        (["kernels.cu:axpy", "a=1", "a=2"], "a is given twice"),
        (["kernels.cu:axpy", "a=1", "x=ones:9", "y=ones:9", "n=9.5"], "parameter `n` (`int`), got the float 9.5"),
        (["kernels.cu:axpy", "a=1", "x=ones:9", "y=ones:9", "n=3e9"], "n"),
        (["kernels.cu:axpy", "a=1", "x=ones:9", "y=ones:9", "n=x"], "is an array; a number of it is x.size"),
        (["kernels.cu:axpy", "a=1", "x=ones:n", "y=ones:9", "n=x.size"], "x needs n needs x"),
        (["kernels.cu:axpy", "a=1", "x=ones:9:f64", "y=ones:9", "n=9"], "got a float64 array of shape (9,)"),
        (["kernels.cu:axpy", "a=1", "x=one:9", "y=ones:9", "n=9"], "did you mean ones?"),
        (["kernels.cu:axpy", "a=1", "x=ones", "y=ones:9", "n=9"], "say how many elements"),
        (["kernels.cu:axpy", "a=1", "x=no.npy", "y=ones:9", "n=9"], "there is no such file"),
        (["kernels.cu:axpy", "a=1", "x=kernels.cu", "y=ones:9", "n=9"], "it holds no array"),
        (["kernels.cu:axpy", "a=1", "x=ones:9", "y=ones:9", "n=9", "--out", "x"], "the kernel writes; those are y"),
        (["kernels.cu:axpy", "a=1", "x=ones:9", "y=ones:9", "n=9", "--block=2000"], "beyond the device's 1024"),
        (["kernels.cu:axpy", "a=1", "x=ones:9", "y=ones:9", "n=9", "--tier=fast"], "tier 'fast' is none of target"),
        (["kernels.cu:axpy", "a=1", "x=ones:9", "y=ones:9", "n=9", "--option=--fast"], "option '--fast'"),
    ],
)  # fmt: skip
def test_wrong_calls(
    kernels: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    assert run(*arguments) == 2
    shown = capsys.readouterr()
    assert shown.err.startswith("gridstride run: ")
    assert said in shown.err
    assert not shown.out


def test_a_text_that_does_not_compile(kernels: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("wrong.cu").write_text("__global__ void f(int* x)\n{\n    x[0] = y;\n}\n")
    assert run("wrong.cu", "x=zeros:1") == 1
    shown = capsys.readouterr().err
    assert "wrong.cu" in shown
    assert "x[0] = y;" in shown
    assert "Traceback" not in shown


def test_headers_beside_the_file(kernels: Path) -> None:
    Path("folder").mkdir()
    Path("folder/value.h").write_text("#define VALUE 42\n")
    Path("folder/f.cu").write_text(
        '#include "value.h"\n__global__ void f(int* x) { x[threadIdx.x] = VALUE; }\n'
    )
    np.testing.assert_array_equal(
        result("folder/f.cu", "x=empty:3", "--size=3", "--block=3", name="x"), [42] * 3
    )
