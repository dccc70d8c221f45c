"""Evaluators, one file each."""
