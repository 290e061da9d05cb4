"""NVIDIA's own headers, compiled for the host, as the reference of what runs on both sides."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from device_cases.case import CTYPES, LETTERS, Case, program

_STAND_INS = """
#define __global__
#ifndef __device__
#define __device__
#endif
static struct { int x; } blockIdx, blockDim, threadIdx;
"""
_LOOP = """
extern "C" void run_{number}({parameters}unsigned long long* out, int n) {{
    for (threadIdx.x = 0; threadIdx.x < n; ++threadIdx.x) group_{number}({arguments}out, n);
}}
"""


def include_folder() -> Path:
    """Return the folder of NVIDIA's headers in the wheel that the tests install."""
    spec = find_spec("nvidia")
    places = spec.submodule_search_locations if spec else None
    folders = [Path(place) / "cu13" / "include" for place in places or ()]
    return next(folder for folder in folders if (folder / "cuda_fp16.h").is_file())


def can_compile() -> bool:
    """Return whether there is a compiler that takes NVIDIA's headers, and all of them."""
    return shutil.which("g++") is not None and (include_folder() / "crt" / "host_defines.h").is_file()


class Oracle:
    """Run cases on the host when the first of their references is asked for."""

    def __init__(self, cases: Sequence[Case], preamble: str) -> None:
        self._cases = cases
        self._preamble = preamble
        self._values: dict[tuple[str, str], np.ndarray[Any, Any]] = {}

    def cases(self) -> list[Case]:
        """Return the cases with references that are NVIDIA's own results."""
        return [replace(case, reference=self._reference(case)) for case in self._cases]

    def _reference(self, case: Case) -> Callable[..., np.ndarray[Any, Any]]:
        def reference(*_: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
            if not self._values:
                self._run()
            return self._values[case.call, case.result]

        return reference

    def _run(self) -> None:
        text, groups = program(self._cases)
        loops = [_loop(number, group[0].inputs) for number, group in enumerate(groups)]
        with tempfile.TemporaryDirectory() as folder:
            source, library = Path(folder) / "oracle.cpp", Path(folder) / "oracle.so"
            source.write_text("\n".join([self._preamble, _STAND_INS, text, *loops]))
            command = [
                "g++",
                "-std=c++17",
                "-O1",
                "-ffp-contract=off",
                "-w",
                "-shared",
                "-fPIC",
                f"-I{include_folder()}",
            ]
            subprocess.run([*command, str(source), "-o", str(library)], check=True)
            host = ctypes.CDLL(str(library))
            for number, group in enumerate(groups):
                self._collect(host[f"run_{number}"], group)

    def _collect(self, function: Any, group: list[Case]) -> None:
        size = group[0].inputs[0].size
        out = np.zeros((len(group), size), np.uint64)
        function(*(ctypes.c_void_p(array.ctypes.data) for array in (*group[0].inputs, out)), size)
        for case, row in zip(group, out, strict=True):
            width = np.dtype(case.result).itemsize
            self._values[case.call, case.result] = np.ascontiguousarray(row.view(case.result)[:: 8 // width])


def _loop(number: int, inputs: Sequence[np.ndarray[Any, Any]]) -> str:
    letters = LETTERS[: len(inputs)]
    parameters = [
        f"const {CTYPES[array.dtype.name]}* {letter}, " for letter, array in zip(letters, inputs, strict=True)
    ]
    return _LOOP.format(
        number=number, parameters="".join(parameters), arguments="".join(f"{letter}, " for letter in letters)
    )
