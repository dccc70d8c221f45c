"""Numba kernels: numpy and numba only, no checks, no strings, no global state.

Importing a module decorates its kernels; a kernel is compiled, or loaded from the cache, at its
first call. `xpe` imports these modules inside the functions that call them. No kernel starts
threads: `out` arrays may be written slice by slice, each slice by a thread of the caller.
"""
