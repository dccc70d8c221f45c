"""The registered metrics: per-sample function, aggregation, direction."""
