"""What a training is to be: the parameters of `ccq_core.CCQ`, and what it is tried on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import orjson
from pydantic import AfterValidator, Field, WithJsonSchema

from ccq_core import CCQ
from ccq_core.model import FULL
from service.schemas.base import Schema
from service.schemas.names import Name

MOST_HELD_OUT = 0.5


def _steps(value: Any) -> Any:
    steps = value.values() if isinstance(value, dict) else [value]
    if not all(isinstance(step, str) for step in steps):
        raise ValueError("expected steps joined by commas, as in 'zca,unit', or an object of such by modality")
    return value


Steps = Annotated[
    Any,
    AfterValidator(_steps),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string"},
                {"type": "object", "additionalProperties": {"type": "string"}},
                {"type": "null"},
            ]
        }
    ),
]


# What it may be, `CCQ` checks.
Dimension = Annotated[
    Any, WithJsonSchema({"anyOf": [{"type": "integer"}, {"type": "string", "enum": [FULL]}, {"type": "null"}]})
]


class TrainingOptions(Schema):
    """How a model is trained. What is left out is as `CCQ` has it by default."""

    bits: int | None = Field(None, description="Length of a code, a multiple of 8 from 8 to 128; 32 by default.")
    dim: Dimension = Field(
        None,
        description="Latent dimension; as many as the features and the bits allow by default, `full`: as the features "
        "alone allow.",
    )
    weights: dict[str, float] | None = Field(None, description="Weight of modalities; 3 for `text`, 1 for all others.")
    metric: Literal["cosine", "euclidean"] | None = Field(
        None, description="What searches rank by; `cosine` by default."
    )
    norm: Literal["byte", "none"] | None = Field(None, description="`none`: codes of directions, a byte shorter.")
    preprocess: Steps = Field(
        None, description="Steps joined by commas, for all modalities or by modality; `zca,unit`."
    )
    mapping: Literal["ridge", "procrustes"] | None = Field(None, description="How features are mapped; `ridge`.")
    mapping_ridge: float | None = Field(None, description="Penalty of the `ridge` mapping; 0.03.")
    effort: int | None = Field(None, description="How hard to look for good codes, from 0 to 3; 2 by default.")
    iterations: int | None = Field(None, description="Most iterations; 30 by default.")
    tolerance: float | None = Field(None, description="End when the loss falls by less than this share of it; 0.0001.")
    codebook_ridge: float | None = Field(None, description="Stabiliser of codebooks; 0.0001.")
    codebook_solver: Literal["cholesky", "cg"] | None = Field(None, description="`cg`: long codes in little memory.")
    start: Literal["joint", "identity"] | None = Field(None, description="First mappings; `joint` by default.")
    seed: int | None = Field(None, description="Seeds everything random; 0 by default.")
    held_out: float = Field(
        0.1,
        ge=0,
        le=MOST_HELD_OUT,
        description="Share of the objects with several modalities that the model is not trained on but tried on; at "
        "most 10,000 of them.",
    )

    def settings(self) -> dict[str, Any]:
        """Those that are given of the arguments of `CCQ`."""
        given = self.model_dump(exclude_none=True, include=set(TrainingOptions.model_fields) - {"held_out"})
        return dict(given)

    def model(self) -> CCQ:
        """A model with these settings, which is not trained yet."""
        return CCQ(**self.settings())


class TrainingRequest(TrainingOptions):
    """A training on what a collection keeps."""

    collection: Name = Field(description="It has to have been created with `keep`.")


def from_query(parameters: Mapping[str, str]) -> dict[str, Any]:
    """What query parameters mean: JSON where they are that, otherwise the text itself."""
    values: dict[str, Any] = {}
    for name, text in parameters.items():
        try:
            values[name] = orjson.loads(text)
        except orjson.JSONDecodeError:
            values[name] = text
    return values


def query_parameters() -> list[dict[str, Any]]:
    """`TrainingOptions` as query parameters of an OpenAPI document."""
    schema = TrainingOptions.model_json_schema()
    return [
        {
            "name": name,
            "in": "query",
            "required": False,
            "description": f"{field.pop('description')} With a file alone.",
            **({"schema": field} if name not in ("weights", "preprocess") else {"schema": {"type": "string"}}),
        }
        for name, field in schema["properties"].items()
    ]
