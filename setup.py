"""Build the compiled fast path where a C compiler is found; everything else is in pyproject.toml."""

import sysconfig

from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel

FOLDER = "src/gridstride/_native"
#: The stable ABI is that of Python with the GIL; elsewhere the package goes without the extension.
HAS_STABLE_ABI = not sysconfig.get_config_var("Py_GIL_DISABLED")

launcher = Extension(
    "gridstride._native._launcher",
    sources=[
        f"{FOLDER}/{name}.c"
        for name in ("module", "launcher", "prepared", "entry", "arrays", "scalars", "cuda_launch")
    ],
    depends=[f"{FOLDER}/{name}.h" for name in ("native", "launch_abi", "numpy_abi", "dlpack_abi")],
    define_macros=[("Py_LIMITED_API", "0x030B0000")],
    extra_compile_args=["-std=c11", "-O2", "-fvisibility=hidden"],
    py_limited_api=True,
    optional=True,
)


class StableWheel(bdist_wheel):
    """Tag the wheel for every Python from 3.11 on."""

    def finalize_options(self) -> None:
        if HAS_STABLE_ABI:
            self.py_limited_api = "cp311"
        super().finalize_options()


setup(ext_modules=[launcher] if HAS_STABLE_ABI else [], cmdclass={"bdist_wheel": StableWheel})
