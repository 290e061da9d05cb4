"""Places that compile and run CUDA C++: the seam (`base`), the registry, and one folder a target."""
