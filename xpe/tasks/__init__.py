"""Kinds of tasks. A task yields samples and a dialogue for each; it never holds a model."""
