"""Requests and replies about aliases."""

from __future__ import annotations

from pydantic import Field

from service.schemas.base import Schema
from service.schemas.names import Name


class AliasRequest(Schema):
    """Where an alias is to lead."""

    collection: Name = Field(description="Name of a collection, which is no alias itself.")


class AliasInfo(Schema):
    """Another name of a collection."""

    alias: str
    collection: str = Field(description="Name of the collection that it leads to.")


class AliasList(Schema):
    """All aliases, by name."""

    aliases: list[AliasInfo]
