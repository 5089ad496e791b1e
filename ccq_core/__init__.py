"""Composite Correlation Quantization: train, encode and search short codes across modalities."""

from ccq_core.errors import CCQError
from ccq_core.index import CodeIndex, Hits
from ccq_core.metrics import mean_average_precision
from ccq_core.model import CCQ
from ccq_core.training import Progress

__version__ = "0.1.0"

__all__ = ["CCQ", "CCQError", "CodeIndex", "Hits", "Progress", "__version__", "mean_average_precision"]
