"""Random CUDA C++ kernels that are free of races and undefined behavior, for comparing ways to run them."""

from generated_kernels.cooperating import COOPERATIONS, CooperatingBatch, generate_cooperating
from generated_kernels.kernels import FEATURES, Batch, GeneratedKernel, generate_batch, places_of_few

__all__ = [
    "COOPERATIONS",
    "FEATURES",
    "Batch",
    "CooperatingBatch",
    "GeneratedKernel",
    "generate_batch",
    "generate_cooperating",
    "places_of_few",
]
