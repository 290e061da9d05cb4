"""Kernels that the CPU target refuses by name and line, or that end in an error by design."""

from __future__ import annotations

import re

import numpy as np

import gridstride as gs
from kernel_battery.bench import Bench
from kernel_battery.row import Results, Row, Source

_CUDA_SAMPLES = "NVIDIA/cuda-samples"


def _refused(bench: Bench) -> Results:
    message = ""
    try:
        bench.module().compile()
    except gs.CompileError as error:
        message = str(error)
    assert re.search(bench.row.refused, message), message or "it was not refused"
    assert re.search(r":\d+", message), f"no line in: {message}"
    return {}


def _textures_of_python(bench: Bench) -> Results:
    message = ""
    try:
        bench.module(text=bench.strings()["source"]).compile()
    except gs.CompileError as error:
        message = str(error)
    assert re.search(bench.row.refused, message), message or "it was not refused"
    return {}


def _failed_assertion(bench: Bench) -> Results:
    (kernel,) = bench.kernels(["testKernel"])
    kernel((2,), (32,), (64,))
    gs.cuda.Stream.null.synchronize()
    try:
        kernel((2,), (32,), (60,))
        gs.cuda.Stream.null.synchronize()
    except gs.GridstrideError as error:
        message = str(error)
    else:
        raise AssertionError("the assertion did not fail")
    assert "assert" in message.lower(), message
    return {"failed": np.array([True])}


def _sample(path: str, commit: str) -> Source:
    return Source(_CUDA_SAMPLES, f"Samples/{path}", commit)


ROWS = (
    Row(
        "K25b", "tests, test_texture",
        (Source(
            "cupy/cupy", "tests/cupy_tests/cuda_tests/test_texture.py", "0505e4f4c5f5a792b28e6ca139a761e2b4fa09c1"
        ),),
        5, "texture objects in one to three dimensions", _textures_of_python, cut=False,
        refused=r"texture \(`cudaTextureObject_t`\) cannot run on the CPU target",
    ),
    Row(
        "K26-XORWOW", "MC_EstimatePiInlineP, as it is",
        (_sample(
            "2_Concepts_and_Techniques/MC_EstimatePiInlineP/src/piestimator.cu",
            "2e41896e1b2c7e2699b7b7f6689c107900c233bb",
        ),),
        2, "`curandState` is XORWOW's", _refused, without=("using std::",),
        refused=r"curandState.*Philox",
    ),
    Row(
        "K27", "cdpSimpleQuicksort",
        (_sample(
            "3_CUDA_Features/cdpSimpleQuicksort/cdpSimpleQuicksort.cu", "2b689228b746248b7bb7d2778d5ea0701669f7d3"
        ),),
        1, "launches from the device", _refused, refused=r"a launch from device code \(dynamic parallelism\)",
    ),
    Row(
        "K28", "simpleAssert_nvrtc",
        (_sample(
            "0_Introduction/simpleAssert_nvrtc/simpleAssert_kernel.cu", "35a407d5799a3022e4f7340b28a6856bf87d977d"
        ),),
        1, "an assertion of threads 60 to 63 becomes a Python error", _failed_assertion, alone=True,
        before="#include <assert.h>\n",
    ),
    Row(
        "K30", "globalToShmemAsyncCopy",
        (_sample(
            "3_CUDA_Features/globalToShmemAsyncCopy/globalToShmemAsyncCopy.cu",
            "306af8d2755e712ffcb0b16a585da61bd1956303",
        ),),
        1, "`cuda::pipeline`", _refused, refused=r"cuda/pipeline",
    ),
    Row(
        "K31", "simpleTextureDrv",
        (_sample(
            "0_Introduction/simpleTextureDrv/simpleTexture_kernel.cu", "ca37378cb454b74e3979fa7a14c110045d3c4437"
        ),),
        1, "a texture object", _refused, refused=r"texture \(`CUtexObject`\) cannot run on the CPU target",
    ),
    Row(
        "K41", "kmeans",
        (Source(
            "reeselevine/gpu-rodinia", "cuda/kmeans/kmeans_cuda_kernel.cu", "45c89bb92fb0ce99cce606aeddd191c80c902fa9"
        ),),
        2, "texture references, which CUDA 12 took away", _refused, refused=r"texture.*CUDA 12",
    ),
)  # fmt: skip
