"""Replies that show what is in a collection: which codewords are used, and where items lie."""

from __future__ import annotations

from pydantic import Field

from service.schemas.base import Schema

MAX_SAMPLE = 2000
MAX_LABEL = 64


class Usage(Schema):
    """How often the codewords of a collection's model are used."""

    model: str = Field(description="Name of the model.")
    version: int = Field(description="The collection's version that this is of.")
    rows: int = Field(description="Number of codes that were counted, those of all databases.")
    codebooks: list[list[int]] = Field(description="For each codebook how many codes use each of its 256 codewords.")


class MapPoint(Schema):
    """Where one item lies in one database."""

    id: str
    database: str
    x: float
    y: float
    label: str | None = Field(description="What its payload has under the key `label`, if that is text or a number.")


class LatentMap(Schema):
    """A sample of a collection in the two directions of the latent space in which it is spread most."""

    model: str = Field(description="Name of the model.")
    version: int = Field(description="The collection's version that this is of.")
    rows: int = Field(description="Number of codes that the sample is from, those of all databases.")
    explained: list[float] = Field(description="Share of the sample's variance along x and along y.")
    points: list[MapPoint] = Field(description="By database, in order of insertion.")
