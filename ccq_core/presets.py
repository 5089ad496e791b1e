"""Named settings of `CCQ`."""

from __future__ import annotations

from typing import Any

# A text usually says more about what a pair means than its image. The paper gives it five times the weight (section
# 5.3), on features that are not scaled to equal energy; on equal energy, which is the default here, three serves best:
# docs/defaults.md. A modality of another name weighs 1.
DEFAULT_WEIGHTS = {"text": 3.0}

PRESETS: dict[str, dict[str, Any]] = {
    # Chosen by measurement: docs/defaults.md.
    "default": {},
    # As near to the paper as its text allows: features of zero mean and unit variance, lambda = 5 for text, R from the
    # identity, AQD in its Euclidean form. Unseen objects are mapped by a nearly unpenalised regression.
    "paper": {
        "metric": "euclidean",
        "weights": {"text": 5.0},
        "preprocess": "zscore",
        "mapping_ridge": 1e-3,
        "effort": 1,
        "start": "identity",
    },
    # Latent vectors have the angles of the features, where no modality has more dimensions than another: for the
    # neighbours that the features' own cosine gives, as vector databases find them. docs/howto/neighbours.md.
    "angles": {"preprocess": "l2", "mapping": "procrustes", "dim": "full", "weights": {}},
}
