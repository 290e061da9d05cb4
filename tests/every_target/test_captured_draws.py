"""Random numbers and matrix products that are recorded in a capture, compared with NumPy."""

import gc

import numpy as np
import pytest

import gridstride as gs
from gridstride import cuda
from gridstride.namespace import captured

KINDS = {"uniform": (0.5, 1 / 12), "normal": (0.0, 1.0)}


@pytest.fixture
def stream(target):
    return cuda.Stream(non_blocking=True)


def launch(graph, stream):
    graph.launch(stream)
    stream.synchronize()


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("kind", KINDS)
def test_draws_have_the_right_moments_and_are_new_at_every_launch(xp, stream, kind, dtype):
    with stream, cuda.Graph() as graph:
        x = captured.draw(kind, (300, 400), dtype, xp.empty, captured.current_capture())
        y = captured.draw(kind, (300, 400), dtype, xp.empty, captured.current_capture())
    samples = []
    for _ in range(3):
        launch(graph, stream)
        samples += [gs.asnumpy(x).copy(), gs.asnumpy(y).copy()]
    mean, variance = KINDS[kind]
    for sample in samples:
        assert sample.dtype == dtype
        assert abs(sample.mean() - mean) < 0.02
        assert abs(sample.var() - variance) < 0.02
        assert kind != "uniform" or (sample.min() >= 0 and sample.max() < 1)
    correlations = np.corrcoef([sample.ravel() for sample in samples])
    assert np.abs(correlations - np.eye(6)).max() < 0.02


def test_the_generator_is_philox(xp, target):
    """The counter's known answers: those of the generator's authors for all zeros and all ones."""
    text = (
        captured._module()._lazy.source.text
        + r"""
    extern "C" __global__ void answer(unsigned* out, unsigned word) {
        uint4 x = philox(make_uint4(word, word, word, word), make_uint2(word, word));
        out[0] = x.x; out[1] = x.y; out[2] = x.z; out[3] = x.w;
    }"""
    )
    answer = gs.RawKernel(text, "answer")
    known = {
        0: [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8],
        0xFFFFFFFF: [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD],
    }
    for word, expected in known.items():
        out = xp.zeros(4, np.uint32)
        answer(1, 1, (out, word))
        assert gs.asnumpy(out).tolist() == expected


@pytest.mark.parametrize("shape", [(1, 1, 1), (16, 16, 16), (33, 70, 17), (5, 0, 3), (0, 4, 4)])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_products(xp, stream, shape, dtype):
    rows, inner, columns = shape
    random = np.random.default_rng(1)
    a, b = random.random((rows, inner)).astype(dtype), random.random((inner, columns)).astype(dtype)
    on_device = xp.asarray(a), xp.asarray(b)
    cuda.synchronize()
    with stream, cuda.Graph() as graph:
        c = captured.matmul(*on_device, xp.empty, stream)
    launch(graph, stream)
    np.testing.assert_allclose(gs.asnumpy(c), a @ b, rtol=1e-5 if dtype == "f4" else 1e-12)


def test_the_graph_keeps_its_counter(xp, stream):
    with stream, cuda.Graph() as graph:
        x = captured.draw("uniform", (8,), "f8", xp.empty, captured.current_capture())
    gc.collect()
    others = [cuda.alloc(8) for _ in range(20)]
    for other in others:
        other.memset(255)
    launch(graph, stream)
    first = gs.asnumpy(x).copy()
    launch(graph, stream)
    assert not np.array_equal(first, gs.asnumpy(x))


def test_misuse_names_what_is_wrong(xp, stream):
    def inside(wrong):
        with stream, cuda.Graph():
            wrong()

    empty = xp.empty
    for wrong, error, message in (
        (lambda: captured.draw("uniform", (2,), "i4", empty, captured.current_capture()), TypeError, "int32"),
        (lambda: captured.matmul(empty((2, 3)), empty((2, 3)), empty, stream), ValueError, "no product"),
        (lambda: captured.matmul(empty((2, 2)), empty((2, 2), "f4"), empty, stream), TypeError, "one dtype"),
    ):
        with pytest.raises(error, match=message):
            inside(wrong)
        assert not stream.is_capturing()


@pytest.mark.gpu
def test_the_program_of_a_graph_with_cupy(target, monkeypatch):
    cupy = pytest.importorskip("cupy")
    monkeypatch.setenv("GRIDSTRIDE_BACKEND", "cupy")
    if "gpu" not in target.features:
        pytest.skip("CuPy's arrays are not this target's")
    graph, stream = cuda.Graph(), cuda.Stream()
    with stream:
        graph.begin_capture(stream)
        x = gs.random.rand(1000, 1000)
        y = gs.random.rand(1000, 1000)
        z = x @ y
        graph.end_capture(stream)
    for _ in range(3):
        launch(graph, stream)
        with stream:
            cupy.testing.assert_allclose(z, cupy.matmul(x.view(), y.view()), rtol=1e-10)
