"""Build the compiled fast path and the CPU target's runtime where compilers are found.

Both are optional: without the first calls take longer, without the second the first kernel does.
Everything else is in pyproject.toml.
"""

import platform
import runpy
import sysconfig
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel

FOLDER = "src/gridstride/_native"
#: The stable ABI is that of Python with the GIL; elsewhere the package goes without the extension.
HAS_STABLE_ABI = not sysconfig.get_config_var("Py_GIL_DISABLED")

launcher = Extension(
    "gridstride._native._launcher",
    sources=[
        f"{FOLDER}/{name}.c"
        for name in (
            "module",
            "launcher",
            "raw_call",
            "launch_stream",
            "prepared",
            "entry",
            "array_key",
            "array_record",
            "array_memory",
            "array_launcher",
            "arrays",
            "cupy_arrays",
            "torch_tensors",
            "scalars",
            "cuda_launch",
            "buffer",
            "driver_call",
            "target_methods",
            "contexts",
            "entries",
            "records",
            "shortcuts",
            "current",
            "with_stream",
            "events",
            "pools",
            "graphs",
            "files",
            "numpy_allocation",
        )
    ],
    depends=[f"{FOLDER}/{name}.h" for name in ("native", "objects", "launch_abi", "numpy_abi", "dlpack_abi")],
    define_macros=[("Py_LIMITED_API", "0x030B0000")],
    extra_compile_args=["-std=c11", "-O2", "-fvisibility=hidden", "-fno-plt"],
    extra_link_args=["-Wl,-z,now"],
    libraries=["m"],
    py_limited_api=True,
    optional=True,
)

CPU = "src/gridstride/targets/cpu"
SOURCES = runpy.run_path(f"{CPU}/prebuilt.py")["digest_of_sources"]()

# A shared object for the CPU target to load, not a module for Python to import.
runtime = Extension(
    "gridstride.targets.cpu._prebuilt",
    sources=[f"{CPU}/runtime/runtime.cpp", f"{CPU}/runtime/prebuilt.cpp"],
    depends=[
        str(path)
        for folder in ("runtime", "include/gridstride_cpu")
        for path in Path(CPU, folder).glob("*.h")
    ],
    include_dirs=[f"{CPU}/include", f"{CPU}/runtime", FOLDER],
    define_macros=[("GRIDSTRIDE_RUNTIME_SOURCES", f'"{SOURCES}"')],
    extra_compile_args=[
        *(
            "-std=gnu++17",
            "-O2",
            "-g0",
            "-w",
            "-fvisibility=hidden",
            "-fno-exceptions",
            "-fno-rtti",
            "-fwrapv",
        ),
        *("-fno-strict-aliasing", "-fno-stack-protector", "-fno-threadsafe-statics", "-U_FORTIFY_SOURCE"),
        *(["-mno-red-zone", "-fcf-protection=none"] if platform.machine() == "x86_64" else []),
    ],
    extra_link_args=["-Wl,-Bsymbolic"],
    py_limited_api=True,
    optional=True,
)


class StableWheel(bdist_wheel):
    """Tag the wheel for every Python from 3.11 on."""

    def finalize_options(self) -> None:
        if HAS_STABLE_ABI:
            self.py_limited_api = "cp311"
        super().finalize_options()


setup(ext_modules=[launcher, runtime] if HAS_STABLE_ABI else [runtime], cmdclass={"bdist_wheel": StableWheel})
