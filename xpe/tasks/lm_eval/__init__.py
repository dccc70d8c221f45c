"""Tasks in the YAML format of lm-evaluation-harness, read as they are.

`index` finds names in folders, `reading` reads a file with what it includes, `naming` resolves
names, tags and groups, `translate` says the same as settings of a task of ours.
"""
