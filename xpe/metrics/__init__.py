"""The registered metrics: per-sample function, aggregation, direction."""

from xpe.metrics import choices, corpus, likelihoods, overlap, texts  # noqa: F401  (they register themselves)
from xpe.metrics.aggregations import get_aggregation, register_aggregation
from xpe.metrics.registered import (
    Registered,
    default_metrics,
    get_metric,
    list_metrics,
    register_metric,
)
from xpe.metrics.views import OUTPUT_TYPES, OutputType, Texts, output_type_of, view_of

__all__ = [
    "OUTPUT_TYPES",
    "OutputType",
    "Registered",
    "Texts",
    "default_metrics",
    "get_aggregation",
    "get_metric",
    "list_metrics",
    "output_type_of",
    "register_aggregation",
    "register_metric",
    "view_of",
]
