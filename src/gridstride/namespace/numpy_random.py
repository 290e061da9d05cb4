"""``numpy.random`` whose functions also take `dtype`, as CuPy's do.

The numbers are those of NumPy's global generator, converted; ``numpy.random.seed`` seeds them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps
from typing import Any

import numpy as np

#: Draws below 1 that must stay below 1 when they are rounded to fewer bits.
_BELOW_ONE = frozenset({"rand", "random", "random_sample", "ranf", "sample"})
#: Functions that take `dtype` here and not in NumPy.
TAKING_DTYPE = _BELOW_ONE | {
    "beta",
    "binomial",
    "chisquare",
    "exponential",
    "f",
    "gamma",
    "geometric",
    "gumbel",
    "hypergeometric",
    "laplace",
    "logistic",
    "lognormal",
    "logseries",
    "multivariate_normal",
    "negative_binomial",
    "noncentral_chisquare",
    "noncentral_f",
    "normal",
    "pareto",
    "poisson",
    "power",
    "randn",
    "rayleigh",
    "standard_cauchy",
    "standard_exponential",
    "standard_gamma",
    "standard_normal",
    "standard_t",
    "triangular",
    "uniform",
    "vonmises",
    "wald",
    "weibull",
    "zipf",
}


@cache
def _converting(name: str) -> Callable[..., Any]:
    draw: Callable[..., Any] = getattr(np.random, name)

    @wraps(draw)
    def converted(*args: Any, dtype: Any = None, **keywords: Any) -> Any:
        values = draw(*args, **keywords)
        if dtype is None:
            return values
        result = np.asarray(values).astype(dtype, copy=False)
        if name in _BELOW_ONE:
            result = np.minimum(result, _largest_below_one(name, result.dtype))
        return result if isinstance(values, np.ndarray) else result[()]

    return converted


def _largest_below_one(name: str, dtype: np.dtype[Any]) -> Any:
    if dtype.kind != "f":
        raise TypeError(f"random.{name} draws numbers from 0 to 1: dtype must be a float type, got {dtype}")
    return np.nextafter(dtype.type(1), dtype.type(0))


def __getattr__(name: str) -> Any:
    return _converting(name) if name in TAKING_DTYPE else getattr(np.random, name)


def __dir__() -> list[str]:
    return dir(np.random)
