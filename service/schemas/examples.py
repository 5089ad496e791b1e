"""Example requests for the OpenAPI document. Each is checked against its schema by a test."""

from __future__ import annotations

from typing import Any

INDEX: dict[str, Any] = {
    "pairs": {
        "items": [
            {
                "id": "p1",
                "features": {"image": [0.1, 0.9, 0.4], "text": [0.7, 0.3]},
                "payload": {"title": "A lighthouse", "year": 1911},
            },
            {"id": "p2", "features": {"text": "zcxMPpqZGT8="}, "payload": None},
        ]
    },
    "only if it is new": {"items": [{"id": "p3", "features": {"text": [0.7, 0.3]}, "if_version": 0}]},
}

PAYLOAD: dict[str, Any] = {"a payload": {"title": "A lighthouse", "year": 1912}, "none": None}

SEARCH: dict[str, Any] = {
    "images for a text": {"query": {"text": [0.7, 0.3]}, "database": "image", "limit": 10},
    "images and texts in one ranking": {"query": {"text": [0.7, 0.3]}, "database": ["image", "text"]},
    "with a filter": {
        "query": {"image": [0.1, 0.9, 0.4], "text": [0.7, 0.3]},
        "filter": {"must": [{"key": "year", "range": {"gte": 1900, "lt": 1950}}]},
    },
    "several queries": {"queries": [{"text": [0.7, 0.3]}, {"image": [0.1, 0.9, 0.4]}], "with_payload": False},
    "by a stored item": {"query_id": "p1", "database": "image"},
    "by examples": {
        "query_by": {"positive": ["p1", {"text": [0.7, 0.3]}], "negative": ["p2"]},
        "score_threshold": 0.2,
        "with_payload": ["title"],
    },
    "the best of each artist": {"query": {"text": [0.7, 0.3]}, "group_by": "artist", "group_size": 3, "limit": 5},
    "the second page": {"query": {"text": [0.7, 0.3]}, "limit": 10, "offset": 10},
}

FACETS: dict[str, Any] = {
    "values of a key": {"key": "year", "limit": 10},
    "of the items that match": {"key": "tags", "filter": {"must": [{"key": "year", "range": {"gte": 1900}}]}},
}

LIST: dict[str, Any] = {
    "that match": {"filter": {"must": [{"key": "category", "match": {"value": "shoes"}}]}, "limit": 50},
    "of these ids": {"filter": {"must": [{"ids": ["p1", "p2"]}]}, "with_codes": True},
    "how many": {"filter": {"must": [{"key": "price", "range": {"lt": 20}}]}, "limit": 0},
}

DELETE: dict[str, Any] = {
    "by id": {"ids": ["p1", "p2"]},
    "by filter": {"filter": {"must_not": [{"key": "title", "exists": True}]}},
}

COLLECTION: dict[str, Any] = {"a collection": {"model": "wiki-32"}}

TRAINING = {
    "defaults": {"collection": "products"},
    "options": {
        "collection": "products",
        "bits": 64,
        "weights": {"text": 5.0},
        "metric": "euclidean",
        "held_out": 0.05,
    },
}

REENCODE: dict[str, Any] = {"with a model that was trained again": {"model": "wiki-32-b"}}

ALIAS: dict[str, Any] = {"a collection by another name": {"collection": "photos-2026"}}
