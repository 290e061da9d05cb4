import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest

from gridstride import _dtypes


@pytest.mark.parametrize("name", _dtypes.SCALAR_NAMES)
def test_the_spelling_of_a_dtype_names_it_again(name):
    dtype = _dtypes.dtype_of_name(name)
    assert _dtypes.dtype_of_ctype(_dtypes.ctype_of_dtype(dtype)) == dtype
    assert _dtypes.name_of_dtype(dtype) == name


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        ("const unsigned", "uint32"),
        ("int unsigned", "uint32"),
        ("long long int", "int64"),
        ("unsigned long int", "uint64"),
        ("volatile char", "int8"),
        ("std::int32_t", "int32"),
        ("::std::uint8_t", "uint8"),
        ("cuda::std::uint64_t", "uint64"),
        ("size_t", "uint64"),
        ("half", "float16"),
        ("std::complex< float >", "complex64"),
        ("thrust::complex<double>", "complex128"),
        ("cuFloatComplex", "complex64"),
    ],
)
def test_many_spellings_name_one_dtype(spelling, name):
    assert _dtypes.dtype_of_ctype(spelling) == np.dtype(name)


@pytest.mark.parametrize("spelling", ["float4", "S", "float *", "long double", "void", "", "signed unsigned"])
def test_other_types_name_no_dtype(spelling):
    assert _dtypes.dtype_of_ctype(spelling) is None


@pytest.mark.parametrize("dtype", ["U3", "O", "M8[s]", "V4", [("a", "f4")], "longdouble"])
def test_dtypes_without_counterpart_are_refused(dtype):
    with pytest.raises(TypeError, match="no CUDA C\\+\\+ counterpart"):
        _dtypes.ctype_of_dtype(np.dtype(dtype))


def test_bfloat16_is_that_of_ml_dtypes():
    assert _dtypes.bfloat16() == np.dtype(ml_dtypes.bfloat16)
    assert _dtypes.is_bfloat16(np.dtype(ml_dtypes.bfloat16))
    assert not _dtypes.is_bfloat16(np.dtype("V2"))
    assert not _dtypes.is_bfloat16(np.dtype("f2"))


def test_bfloat16_without_ml_dtypes_still_compares():
    program = """
import sys
sys.modules["ml_dtypes"] = None
import numpy as np
from gridstride import _dtypes
first = _dtypes.dtype_of_ctype("__nv_bfloat16")
assert first == _dtypes.dtype_of_name("bfloat16") and first.itemsize == 2
assert first != np.dtype("u2") and first != np.dtype("V2") and first != np.dtype("f2")
assert _dtypes.is_bfloat16(first) and _dtypes.name_of_dtype(first) == "bfloat16"
assert _dtypes.ctype_of_dtype(first) == "__nv_bfloat16"
"""
    subprocess.run([sys.executable, "-c", program], check=True)
