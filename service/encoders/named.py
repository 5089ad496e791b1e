"""Encoders by name, as requests use them: with limits on what they are given, and what they give checked."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from ccq_core.features import Float32
from service import deadline, metrics
from service.encoders.interface import Encoder, Takes, ValueRefusedError
from service.errors import EncoderFailedError, EncoderMismatchError, Fault, ServiceError, UnknownEncoderError
from service.places import shorten
from service.settings import Settings

log = logging.getLogger(__name__)

_AT_ONCE = 32  # values that an encoder is given together: enough to be quick, and few unpacked images in memory


class NamedEncoder:
    """An encoder that the operator of the server has named.

    Parameters
    ----------
    name, encoder:
        Its name, and what it is.
    settings:
        Of the limits.
    """

    def __init__(self, name: str, encoder: Encoder, settings: Settings) -> None:
        self.name = name
        self.takes: Takes | Literal["anything"] = encoder.takes
        self.dim = encoder.dim
        self._encoder = encoder
        self._max_text_chars = settings.max_text_chars
        self._max_image_bytes = settings.max_image_bytes

    def encode(self, values: Sequence[Any]) -> Float32:
        """Features (n, P) float32 of n values, each a string or the bytes of an image file as `takes` says.

        Raises
        ------
        ValueRefusedError
            One of them is too long, or cannot be encoded.
        EncoderFailedError
            The encoder failed, or gave something else than features.
        RequestTimeoutError
            The request was over before all were encoded.
        """
        for row, value in enumerate(values):
            self._check(row, value)
        features = np.empty((len(values), self.dim), dtype=np.float32)
        for lo in range(0, len(values), _AT_ONCE):
            if lo:
                deadline.check()
            part = values[lo : lo + _AT_ONCE]
            try:
                features[lo : lo + len(part)] = self._encoded(part)
            except ValueRefusedError as error:
                raise ValueRefusedError(lo + error.row, error.reason) from None
        return features

    def _check(self, row: int, value: Any) -> None:
        if self.takes == "text":
            if len(value) > self._max_text_chars:
                reason = f"expected a text of at most {self._max_text_chars} characters, got {len(value)}"
                raise ValueRefusedError(row, reason)
        elif len(value) > self._max_image_bytes:
            reason = f"expected an image file of at most {self._max_image_bytes} bytes, got {len(value)}"
            raise ValueRefusedError(row, reason)

    def _encoded(self, values: Sequence[Any]) -> Float32:
        began = time.perf_counter()
        try:
            features = np.asarray(self._encoder.encode(values))
        except (ValueRefusedError, ServiceError):
            raise
        except Exception as error:
            raise EncoderFailedError(f"encoder {self.name!r} failed; the server's log says how") from error
        expected = (len(values), self.dim)
        if features.shape != expected or features.dtype.kind != "f" or not np.isfinite(features).all():
            got = f"{features.dtype} of the shape {features.shape}"
            log.error("encoder %r: expected finite float32 of the shape %s, got %s", self.name, expected, got)
            raise EncoderFailedError(f"encoder {self.name!r} gave something else than features: {got}")
        metrics.encoded(self.name, len(values), time.perf_counter() - began)
        return features


Encoders = Mapping[str, NamedEncoder]
"""Encoders by name; or those of a collection, by modality."""


class _Unusable:
    """Stands for an encoder that a collection names, and the server does not have."""

    takes: Any = "anything"

    def __init__(self, dim: int, reason: str) -> None:
        self.dim = dim
        self._reason = reason

    def encode(self, values: Sequence[Any]) -> Float32:  # noqa: ARG002 (as all encoders)
        raise EncoderFailedError(self._reason)


def bind(names: Mapping[str, str], known: Encoders, dims: Mapping[str, int], settings: Settings) -> Encoders:
    """The encoders of a collection by modality; those that are not there, or do not fit any more, fail when used.

    Parameters
    ----------
    names:
        Their names by modality.
    known:
        The server's encoders.
    dims:
        Of the model's modalities.
    """
    bound = {}
    for modality, name in names.items():
        if modality not in dims:  # the model was another when it was seen to
            log.warning("encoder of modality %r: the model has none of this name", modality)
            continue
        dim = dims[modality]
        if name in known and known[name].dim == dim:
            bound[modality] = known[name]
            continue
        reason = _not_known(name, known) if name not in known else _other_dim(name, known, dim)
        log.warning("encoder of modality %r: %s", modality, reason)
        bound[modality] = NamedEncoder(name, _Unusable(dim, f"{reason}; see CCQ_ENCODERS"), settings)
    return bound


def check_fit(names: Mapping[str, str], known: Encoders, modalities: Mapping[str, Mapping[str, Any]]) -> None:
    """See that the encoders of a request can be used.

    Parameters
    ----------
    names:
        Of encoders, by modality.
    known:
        The server's encoders.
    modalities:
        `dim` and more of the model's modalities.

    Raises
    ------
    UnknownEncoderError
        The server has none of this name.
    EncoderMismatchError
        The model has no such modality, or takes features of another dimension there.
    """
    for modality, name in names.items():
        place = ("encoders", modality)
        if modality not in modalities:
            reason = f"unknown modality, expected {', '.join(modalities)}"
            raise EncoderMismatchError.from_faults([Fault.at(place, reason)])
        if name not in known:
            raise UnknownEncoderError.from_faults([Fault.at(place, _not_known(name, known))])
        dim = modalities[modality]["dim"]
        if known[name].dim != dim:
            raise EncoderMismatchError.from_faults([Fault.at(place, _other_dim(name, known, dim))])


def _not_known(name: str, known: Encoders) -> str:
    return f"no encoder {shorten(name)} on this server, expected {', '.join(known)}"


def _other_dim(name: str, known: Encoders, dim: int) -> str:
    return f"expected an encoder of {dim} dimensions, as the model has, got {name!r} of {known[name].dim}"
