"""Standard errors, intervals, groups and comparisons; checks what the kernels assume."""
