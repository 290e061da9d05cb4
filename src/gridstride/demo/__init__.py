"""A demonstration: a picture goes through CUDA C++ kernels of many kinds, and every result is checked.

``stages`` is the program a user would write, ``kernels/`` holds its CUDA C++, and ``reference`` says
in NumPy what each kernel should give; the rest measures, draws and prints.
"""
