"""Numba kernels: numpy and numba only, no checks, no strings, no global state."""
