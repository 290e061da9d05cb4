"""Forward names to the active array library, so that ``gridstride.zeros`` is NumPy's or CuPy's."""

from gridstride.namespace.backend import get_backend, set_backend, use_backend
from gridstride.namespace.conversion import asnumpy, get_array_module, ndarray
from gridstride.namespace.forwarding import forward, forwarded_names

__all__ = [
    "asnumpy",
    "forward",
    "forwarded_names",
    "get_array_module",
    "get_backend",
    "ndarray",
    "set_backend",
    "use_backend",
]
