"""Loops for devices that run blocks of threads: elementwise calls and folds."""
