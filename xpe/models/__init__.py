"""Backends. A model is `identity` and `reply`; heavy imports happen on first use."""
