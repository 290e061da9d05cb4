"""What gridstride is compared with. Each module has ``case(name, arrays)``: a callable, or None for no counterpart.

A call leaves its result in the arrays under the names that `workloads` knows. Modules whose package is
not installed are left out.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

#: Peers by the module that holds them, and the package each needs.
PEERS = {
    "native": "native",
    "PoCL": "opencl",
    "numba": "numba_parallel",
    "numexpr": "numexpr_",
    "NumPy": "numpy_",
}


def available() -> dict[str, ModuleType]:
    """Return the peers that can be imported, with a line for each that cannot."""
    found = {}
    for name, module in PEERS.items():
        try:
            found[name] = import_module(f"peers.{module}")
        except ImportError as error:
            print(f"{name} is left out: {error}")
    return found
