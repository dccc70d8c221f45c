"""The documented home of the evaluators' base class."""
