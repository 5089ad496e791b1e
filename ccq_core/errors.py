"""Everything that the core raises.

::

    CCQError
    ├── InvalidInputError (ValueError)        an argument or an array cannot be used
    │   ├── FeatureError                      features of one modality are malformed
    │   └── UnknownModalityError (KeyError)   the model has no such modality
    ├── NotFittedError (RuntimeError)         the model has not been trained yet
    ├── UnknownIdError (KeyError)             the index holds no such id
    └── ModelFileError (ValueError)           a file is no usable model
        ├── ModelFormatError                  it is something else, or holds what a model may not hold
        ├── ModelTruncatedError               its end is missing
        ├── ModelCorruptError                 its checksum does not match its contents
        └── ModelVersionError                 it was written by a newer version of this package

Every message says what was received, what was expected and, where one exists, the remedy.
"""

from __future__ import annotations


class CCQError(Exception):
    """Base of all errors that this package raises on purpose."""

    def __str__(self) -> str:  # KeyError would show the repr of its argument
        return str(self.args[0]) if self.args else ""


class InvalidInputError(CCQError, ValueError):
    """An argument or an array cannot be used. Nothing was changed."""


class FeatureError(InvalidInputError):
    """Features of one modality have a wrong shape, type or value.

    Attributes
    ----------
    modality:
        The modality that the features were given for.
    row:
        Index of the first offending row, or None where the whole array is at fault.
    reason:
        The message without the modality and row, for callers that name the place themselves.
    """

    def __init__(self, modality: str, reason: str, row: int | None = None) -> None:
        place = f"features[{modality!r}]" + ("" if row is None else f"[{row}]")
        super().__init__(f"{place}: {reason}")
        self.modality = modality
        self.row = row
        self.reason = reason


class UnknownModalityError(InvalidInputError, KeyError):
    """Features were given for a modality that the model was not trained on."""

    def __init__(self, modality: str, known: tuple[str, ...]) -> None:
        super().__init__(f"unknown modality {modality!r}; this model knows {', '.join(map(repr, known))}")
        self.modality = modality


class NotFittedError(CCQError, RuntimeError):
    """The model was used before `fit` or `load`."""


class UnknownIdError(CCQError, KeyError):
    """An id was named that the index does not hold."""


class ModelFileError(CCQError, ValueError):
    """A model file cannot be used."""


class ModelFormatError(ModelFileError):
    """The bytes are no CCQ model, or hold something that a model may not hold."""


class ModelTruncatedError(ModelFileError):
    """The file ends before its contents do: a download or copy was cut short."""


class ModelCorruptError(ModelFileError):
    """The checksum does not match: bytes were changed after the file was written."""


class ModelVersionError(ModelFileError):
    """The file was written by a newer version of this package."""
