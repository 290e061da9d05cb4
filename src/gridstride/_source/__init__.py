"""The CUDA C++ text of a call: one text, valid on every target."""
