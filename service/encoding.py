"""Items' codes: each modality alone and, where an item has several, all of them together."""

from __future__ import annotations

import numpy as np

from ccq_core import CCQ
from ccq_core.model import PAIR
from service.features import Rows, Vectors
from service.records import Codes, Layout


def encode_items(vectors: Vectors, model: CCQ) -> Codes:
    """Codes of n items for every database, one call of the model for each.

    Raises
    ------
    CoreInputError
        Features that the model cannot map; names the first item.
    """
    layout = Layout.of(model)
    present = np.zeros((vectors.features.n, len(layout.databases)), dtype=bool)
    rows = np.zeros((vectors.features.n, len(layout.databases), layout.width), dtype=np.uint8)
    several = np.sum(list(vectors.features.present.values()), axis=0) > 1
    for i, database in enumerate(layout.databases):
        mask = several if database == PAIR else vectors.features.present.get(database)
        if mask is None or not mask.any():
            continue
        chosen: Rows = np.flatnonzero(mask)
        present[:, i] = mask
        with vectors.faults_named(chosen):
            if database == PAIR:
                rows[chosen, i] = model.encode(vectors.marked(chosen))
            else:
                array = vectors.features.arrays[database]
                rows[chosen, i] = model.encode({database: array if mask.all() else array[chosen]})
    return Codes(present, rows)
