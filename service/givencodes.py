"""Codes that are given instead of features: those of a collection of the same model, moved as they are."""

from __future__ import annotations

import binascii
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from ccq_core.model import PAIR
from service.collection import Collection
from service.errors import CollectionConflictError, Fault, InvalidRequestError
from service.features import Vectors
from service.places import Location, shorten
from service.records import Codes, Layout
from service.tables import Coder


def check_model(collection: Collection, coder: Coder, checksum: str | None) -> None:
    """Refuse codes that are not of the collection's model.

    Parameters
    ----------
    collection, coder:
        The collection, and its model at some moment.
    checksum:
        Of the model that made them.

    Raises
    ------
    InvalidRequestError
        It was not given.
    CollectionConflictError
        It is not that of the collection's model.
    """
    if checksum is None:
        raise InvalidRequestError.from_faults(
            [Fault.at(("model_checksum",), "expected the checksum of the model that made the codes, got none")]
        )
    known = collection.checksum_of(coder)
    if checksum != known:
        raise CollectionConflictError(
            f"expected codes of model {coder.record.model!r} with the checksum {known}, got codes of one with "
            f"{shorten(checksum)}: codes of one model mean nothing to another"
        )


def read_codes(objects: Sequence[Mapping[str, str]], locate: Callable[[int], Location], layout: Layout) -> Codes:
    """Code rows by database, in base64.

    Parameters
    ----------
    objects:
        Those of n items.
    locate:
        From an item's number to the place of its codes.
    layout:
        Of the collection's records.

    Raises
    ------
    InvalidRequestError
        An unknown database, no base64, or another length than the model's.
    """
    order = {name: i for i, name in enumerate(layout.databases)}
    present = np.zeros((len(objects), len(order)), dtype=bool)
    rows = np.zeros((len(objects), len(order), layout.width), dtype=np.uint8)
    for i, given in enumerate(objects):
        for database, text in given.items():
            if database not in order:
                reason = f"unknown database, expected {', '.join(order)}"
                raise InvalidRequestError.from_faults([Fault.at((*locate(i), database), reason)])
            try:
                row = binascii.a2b_base64(text, strict_mode=True)
            except (binascii.Error, ValueError) as error:
                raise _refused((*locate(i), database), f"expected base64, got {shorten(text)}: {error}") from None
            if len(row) != layout.width:
                raise _refused((*locate(i), database), f"expected {layout.width} bytes, got {len(row)}")
            present[i, order[database]] = True
            rows[i, order[database]] = np.frombuffer(row, dtype=np.uint8)
    return Codes(present, rows)


def check_codes(
    collection: Collection,
    coder: Coder,
    codes: Codes,
    vectors: Vectors | None,
    locate: Callable[[int], Location],
) -> None:
    """Refuse codes that no indexing of features would have given.

    Raises
    ------
    InvalidRequestError
        An item is in no database, in `pair` though it has one modality or not in it though it has several, or, where
        the collection keeps features, has not those of the modalities whose codes it has.
    """
    names = coder.layout.databases
    modalities = [i for i, name in enumerate(names) if name != PAIR]
    number = codes.present[:, modalities].sum(axis=1)
    wrong = number == 0
    if PAIR in names:
        wrong |= (number > 1) != codes.present[:, names.index(PAIR)]
    for i in np.flatnonzero(wrong).tolist():
        got = [name for name, has in zip(names, codes.present[i], strict=True) if has]
        reason = f"expected codes of one modality, or of several and {PAIR!r}, got {', '.join(got) or 'none'}"
        raise _refused(locate(i), reason)
    if collection.kept is None:
        return
    for i in modalities:
        absent = np.zeros(len(codes), dtype=bool)
        has = absent if vectors is None else vectors.features.present.get(names[i], absent)
        for row in np.flatnonzero(has != codes.present[:, i]).tolist():
            raise _refused(
                locate(row),
                f"the collection keeps features: expected features of exactly the modalities that have codes, but of "
                f"{names[i]!r} there is only the one or the other",
            )


def _refused(place: Location, reason: str) -> InvalidRequestError:
    return InvalidRequestError.from_faults([Fault.at(place, reason)])
