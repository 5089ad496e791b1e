"""Options that several verbs of search share, for type checkers and for `check_options`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Literal, TypedDict

Filter = Mapping[str, Any]
"""``{"must": [...], "should": [...], "must_not": [...]}``; docs/service.md has the conditions."""


_OTHER_NAMES = dict.fromkeys(("k", "n", "top", "top_k", "topk", "n_results", "size", "count", "num"), "limit") | {
    **dict.fromkeys(("where", "filters", "query_filter"), "filter"),
    **dict.fromkeys(("modality", "db", "index", "target"), "database"),
    **dict.fromkeys(("threshold", "min_score"), "score_threshold"),
    **dict.fromkeys(("page_size", "batch_size"), "page"),
    **dict.fromkeys(("rerank", "refine"), "rescore"),
    **dict.fromkeys(("payload", "include"), "with_payload"),
    **dict.fromkeys(("skip", "start"), "offset"),
}
"""What other libraries call these."""


class RankingOptions(TypedDict, total=False):
    """Where to search, and what of it to give.

    Attributes
    ----------
    database:
        A modality's name or ``pair``; several: one merged ranking, which lists an item once for each database that
        it is found in. By default ``pair``, or the only modality.
    filter:
        Only items whose payload matches.
    score_threshold:
        Only results with a score of at least this.
    with_payload:
        Whether results have their payload, or the keys of what they have of it. By default they have it.
    metric:
        By default the model's.

    None is as good as nothing.
    """

    database: str | Sequence[str] | None
    filter: Filter | None
    score_threshold: float | None
    with_payload: bool | Sequence[str] | None
    metric: Literal["cosine", "euclidean"] | None


class SearchOptions(RankingOptions, total=False):
    """The same, and how to rank anew.

    Attributes
    ----------
    rescore:
        Rank the nearest by codes anew, by the features that the collection keeps.
    oversampling:
        With `rescore`: how many times as many as are wanted are ranked anew; 4 by default.
    """

    rescore: bool | None
    oversampling: float | None


class TrainingOptions(TypedDict, total=False):
    """How the service trains a model: the settings of `ccq_core.CCQ`, which what is left out is as by default.

    Attributes
    ----------
    bits:
        Length of a code, a multiple of 8 from 8 to 128.
    held_out:
        Share of the objects that the model is not trained on but tried on; the job's result tells how well.
    """

    bits: int
    dim: int
    weights: Mapping[str, float]
    metric: Literal["cosine", "euclidean"]
    norm: Literal["byte", "none"]
    preprocess: str | Mapping[str, str]
    mapping: Literal["ridge", "procrustes"]
    mapping_ridge: float
    effort: int
    iterations: int
    tolerance: float
    codebook_ridge: float
    codebook_solver: Literal["cholesky", "cg"]
    start: Literal["joint", "identity"]
    seed: int
    held_out: float


def check_options(options: Mapping[str, Any], known: type, own: Sequence[str] = ()) -> dict[str, Any]:
    """Those options that are not None; TypeError for one that is none of `known`, as for any other keyword.

    `own`: the names of the verb's own arguments, which an option may be a mistyped one of.
    """
    names = [*own, *known.__annotations__]
    for name in options:
        if name not in known.__annotations__:
            near = _OTHER_NAMES.get(name.lower()) or next(iter(get_close_matches(name.lower(), names, 1)), None)
            meant = f"did you mean {near!r}? " if near in names else ""
            raise TypeError(f"unexpected option {name!r}: {meant}expected one of {', '.join(names)}")
    return {name: value for name, value in options.items() if value is not None}
