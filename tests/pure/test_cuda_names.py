"""The public names of gridstride.cuda besides the runtime's objects."""

import os
import stat
import sys
from types import ModuleType, SimpleNamespace

import pytest
from fake_target import FakeTarget, make_default

from gridstride import cuda
from gridstride.errors import CUDAError, TargetUnavailable
from gridstride.targets import registry


@pytest.fixture
def fake(monkeypatch):
    target = FakeTarget()
    make_default(monkeypatch, target)
    monkeypatch.setattr(registry, "names", lambda: ("fake", "absent"))
    monkeypatch.setattr(registry, "get", lambda name: target if name == "fake" else absent())
    return target


def absent():
    raise TargetUnavailable("absent", "no driver", "Install one.")


@pytest.fixture
def bindings(monkeypatch):
    """Stand-ins for NVIDIA's Python bindings."""
    for name in ("driver", "nvrtc", "runtime"):
        module = ModuleType(f"cuda.bindings.{name}")
        module.answer = f"{name}'s"
        monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setitem(sys.modules, "cuda", ModuleType("cuda"))
    monkeypatch.setitem(sys.modules, "cuda.bindings", ModuleType("cuda.bindings"))
    return sys.modules["cuda.bindings.runtime"]


def test_every_public_name_is_there_and_the_list_is_sorted():
    assert cuda.__all__ == sorted(cuda.__all__)
    for name in cuda.__all__:
        assert getattr(cuda, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        cuda.nonsense  # noqa: B018


def test_cuda_is_available_with_a_real_gpu_alone(fake):
    assert not cuda.is_available()
    fake.features = frozenset({"gpu"})
    assert cuda.is_available()
    fake._devices = 0
    assert not cuda.is_available()


def test_a_cublas_handle_needs_a_gpu(fake, monkeypatch):
    with pytest.raises(NotImplementedError, match="default target is 'fake'"):
        cuda.get_cublas_handle()
    fake.features = frozenset({"gpu"})
    cupy = ModuleType("cupy")
    cupy.cuda = SimpleNamespace(device=SimpleNamespace(get_cublas_handle=lambda: 77))
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    assert cuda.get_cublas_handle() == 77


def test_the_runtime_s_functions_ask_the_default_target(fake):
    assert cuda.runtime.getDeviceCount() == 2
    cuda.runtime.setDevice(1)
    assert cuda.runtime.getDevice() == cuda.get_device_id() == 1
    assert cuda.runtime.CUDARuntimeError is CUDAError
    with pytest.raises(cuda.runtime.CUDARuntimeError):
        cuda.runtime.setDevice(2)


@pytest.mark.parametrize("name", ["driver", "nvrtc", "runtime"])
def test_other_low_level_names_are_those_of_the_bindings(bindings, name):
    namespace = getattr(cuda, name)
    assert namespace.answer == f"{name}'s"
    assert "answer" in dir(namespace)
    with pytest.raises(AttributeError):
        namespace.nonsense  # noqa: B018


@pytest.mark.parametrize("name", ["driver", "nvrtc", "runtime"])
def test_without_the_bindings_the_remedy_is_named(monkeypatch, name):
    monkeypatch.setitem(sys.modules, f"cuda.bindings.{name}", None)
    namespace = getattr(cuda, name)
    with pytest.raises(TargetUnavailable, match=r"Install gridstride\[cuda13\]"):
        namespace.cuInit  # noqa: B018
    assert "cuInit" not in dir(namespace)
    with pytest.raises(AttributeError):
        namespace.__wrapped__  # noqa: B018


def test_the_runtime_s_version(bindings):
    bindings.getLocalRuntimeVersion = lambda: (0, 13000)
    assert cuda.get_local_runtime_version() == 13000

    class Code(int):
        name = "cudaErrorUnknown"

    bindings.getLocalRuntimeVersion = lambda: (Code(999), 0)
    with pytest.raises(CUDAError, match="cudaErrorUnknown") as caught:
        cuda.get_local_runtime_version()
    assert caught.value.code == 999


@pytest.fixture
def toolkit(tmp_path, monkeypatch):
    """An empty environment, and a folder with programs in bin."""
    for variable in ("CUDA_PATH", "CUDA_HOME", "NVCC", "ROCM_HOME", "ROCM_PATH"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "nowhere"))
    (tmp_path / "kit" / "bin").mkdir(parents=True)
    for program in ("nvcc", "hipcc"):
        path = tmp_path / "kit" / "bin" / program
        path.touch()
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return tmp_path / "kit"


@pytest.mark.parametrize(
    ("variable", "folder", "compiler", "program"),
    [
        ("CUDA_PATH", cuda.get_cuda_path, cuda.get_nvcc_path, "nvcc"),
        ("CUDA_HOME", cuda.get_cuda_path, cuda.get_nvcc_path, "nvcc"),
        ("ROCM_HOME", cuda.get_rocm_path, cuda.get_hipcc_path, "hipcc"),
        ("ROCM_PATH", cuda.get_rocm_path, cuda.get_hipcc_path, "hipcc"),
    ],
)
def test_toolkits_are_found_by_variable_and_by_path(
    toolkit, monkeypatch, variable, folder, compiler, program
):
    monkeypatch.setenv(variable, str(toolkit))
    assert folder() == str(toolkit)
    assert compiler() == str(toolkit / "bin" / program)
    monkeypatch.delenv(variable)
    monkeypatch.setenv("PATH", str(toolkit / "bin"))
    assert folder() == os.path.realpath(toolkit)
    assert os.path.samefile(compiler(), toolkit / "bin" / program)


def test_nvcc_can_be_named(toolkit, monkeypatch):
    monkeypatch.setenv("NVCC", "/opt/my/nvcc")
    assert cuda.get_nvcc_path() == "/opt/my/nvcc"


def test_missing_toolkits_are_none(toolkit, monkeypatch):
    monkeypatch.setattr("pathlib.Path.is_dir", lambda self: False)
    assert cuda.get_cuda_path() is None
    assert cuda.get_nvcc_path() is None
    assert cuda.get_rocm_path() is None
    assert cuda.get_hipcc_path() is None


def test_wrong_arguments_say_what_was_expected(fake):
    stream, pointer, hook = cuda.Stream(), cuda.alloc(16), cuda.MemoryHook()
    refused = (
        ("named by its number, an integer, got str", lambda: cuda.Device("0")),
        ("named by its number, an integer, got float", lambda: cuda.Device(1.5)),
        ("named by its number, an integer, got str", lambda: cuda.set_device("x")),
        ("mem must be memory or a pointer to memory, got int", lambda: cuda.MemoryPointer(5, 0)),
        ("'str' object cannot be interpreted as an integer", lambda: cuda.MemoryPointer(pointer, "0")),
        ("'str' object cannot be interpreted as an integer", lambda: pointer + "1"),
        ("'str' object cannot be interpreted as an integer", lambda: pointer.memset("a")),
        ("callback must be callable, got int", lambda: stream.add_callback(5, 5)),
        ("callback must be callable, got NoneType", lambda: stream.launch_host_func(None, 5)),
        ("module must be a module with a program, got 1", lambda: cuda.Function(1, "f")),
    )
    for text, call in refused:
        with pytest.raises(TypeError, match=text):
            call()
    assert not fake.made("launch_host_function")
    with pytest.raises(RuntimeError, match="the hook 'MemoryHook' is not entered in this thread"):
        hook.__exit__(None, None, None)
