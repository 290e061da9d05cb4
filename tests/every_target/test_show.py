"""``gridstride show``: the kernels of a file, and what they become."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from gridstride import cli
from gridstride.targets import registry
from gridstride.targets.cuda import nvrtc

KERNELS = """\
__global__ void first(float a, float* x) { x[threadIdx.x] = a * x[threadIdx.x] + 1; }

template <typename T, int N> __global__ void second(T* x) { x[threadIdx.x] += N; }
"""
DISASSEMBLY = """\
        .target sm_90
//--------------------- .text._Z5firstfPf --------------------------
  FFMA R0, R1, R2, R3 ;
//--------------------- .text._Z6secondIfLi3EEvPT_ --------------------------
  FADD R0, R1, R2 ;
"""


@pytest.fixture(autouse=True)
def _kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("kernels.cu").write_text(KERNELS)


@pytest.fixture
def _nvrtc() -> None:
    if nvrtc.find() is None:
        pytest.skip("there is no NVRTC")


def test_it_lists_the_kernels(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["show", "kernels.cu"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "kernels.cu has 2 kernels",
        "  kernels.cu:first          (float a, float* x)  line 1",
        "  'kernels.cu:second<...>'  (T* x)  line 3",
    ]


@pytest.mark.parametrize("shown_for", ["cpu", "cuda"])
@pytest.mark.parametrize("kernel", ["first", "second<int, 3>"])
def test_every_form_of_every_target(
    shown_for: str,
    kernel: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if shown_for == "cuda" and nvrtc.find() is None:
        pytest.skip("there is no NVRTC")
    _install_disassembler(tmp_path, monkeypatch)
    for form in registry.listings(shown_for).forms:
        assert cli.main(["show", f"kernels.cu:{kernel}", "--target", shown_for, "--form", form]) == 0
        shown = capsys.readouterr()
        assert kernel.partition("<")[0] in shown.out or form == "sass"
        assert not shown.err


def test_assembly_is_that_of_the_kernel_and_follows_the_options(capsys: pytest.CaptureFixture[str]) -> None:
    shown = {}
    for contraction in ("true", "false"):
        command = ["show", "kernels.cu:first", "--target", "cpu", "--form", "assembly", "--fmad", contraction]
        assert cli.main(command) == 0
        shown[contraction] = capsys.readouterr().out
    assert shown["true"] != shown["false"]
    assert "first(float, float*)" in shown["true"] or "_Z5first" in shown["true"]
    assert ".cfi" not in shown["true"]


def test_the_tier_is_told_with_what_keeps_a_kernel_from_a_faster_one(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("waiting.cu").write_text("__global__ void f(int* x)\n{\n    __syncthreads();\n    *x = 1;\n}\n")
    assert cli.main(["show", "waiting.cu", "--target", "cpu", "--form", "tier"]) == 0
    shown = capsys.readouterr().out
    assert "tier 'fibers'" in shown
    assert "waiting.cu:3" in shown
    assert cli.main(["show", "kernels.cu:first", "--target", "cpu", "--form", "tier", "--tier", "flat"]) == 0
    assert "tier 'flat'" in capsys.readouterr().out


def test_the_flat_form_is_shown_as_people_write(capsys: pytest.CaptureFixture[str]) -> None:
    shown = {}
    for tier in ("flat", "fibers"):
        assert cli.main(["show", "kernels.cu:first", "--target", "cpu", "--tier", tier]) == 0
        shown[tier] = capsys.readouterr().out
    assert "gridstride_flat_first" in shown["flat"]
    assert "gridstride_flat_first" not in shown["fibers"]
    assert "    return gridstride_exact;" in shown["flat"]
    assert max(map(len, shown["flat"].splitlines())) < 700


def test_preprocessed_source_is_shown_without_headers(capsys: pytest.CaptureFixture[str]) -> None:
    Path("value.h").write_text("#define VALUE 42\n")
    Path("kernels.cu").write_text('#include "value.h"\n__global__ void f(int* x) { *x = VALUE; }\n')
    assert cli.main(["show", "kernels.cu", "--target", "cpu"]) == 0
    shown = capsys.readouterr().out
    assert "*x = 42;" in shown
    assert len(shown.splitlines()) < 60


@pytest.mark.usefixtures("_nvrtc")
def test_ptx_and_sass_hold_the_named_kernel_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["show", "kernels.cu:second<float, 3>", "--target", "cuda", "--arch", "sm_90"]
    assert cli.main([*command, "--form", "ptx"]) == 0
    shown = capsys.readouterr().out
    assert re.findall(r"\.entry (\w+)", shown) == ["_Z6secondIfLi3EEvPT_"]
    assert "gridstride_" not in shown
    _install_disassembler(tmp_path, monkeypatch)
    assert cli.main([*command, "--form", "sass"]) == 0
    shown = capsys.readouterr().out
    assert "FADD" in shown
    assert "FFMA" not in shown


@pytest.mark.usefixtures("_nvrtc")
def test_a_missing_disassembler_is_named_with_the_remedy(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("gridstride.targets.toolkit.program", lambda name: None)
    assert cli.main(["show", "kernels.cu:first", "--target", "cuda", "--form", "sass"]) == 1
    assert "pip install nvidia-cuda-nvdisasm" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["kernels.cu:first", "--target", "cpu", "--form", "ptx"], "has no form 'ptx'; it has source"),
        (["kernels.cu:first", "--target", "null"], "target 'null' does not show"),
        (["kernels.cu:first", "--target", "cpu", "--arch", "sm_90"], "not for 'sm_90'"),
        (["kernels.cu:second"], "name an instance"),
        (["none.cu"], "there is no file"),
    ],
)
def test_wrong_calls(capsys: pytest.CaptureFixture[str], arguments: list[str], said: str) -> None:
    assert cli.main(["show", *arguments]) == 2
    assert said in capsys.readouterr().err


def _install_disassembler(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put a stand-in for NVIDIA's disassembler where a toolkit has it."""
    program = folder / "bin" / "nvdisasm"
    program.parent.mkdir(exist_ok=True)
    program.write_text(f"#!{sys.executable}\nprint({DISASSEMBLY!r})\n")
    program.chmod(0o755)
    monkeypatch.setenv("CUDA_PATH", str(folder))
