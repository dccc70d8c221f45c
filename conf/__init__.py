"""Hydra configs: the folders are the fields of RunConfig, the files are names to choose."""
