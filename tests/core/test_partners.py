"""How far ahead partners are found, against the definition written out."""

import numpy as np
import pytest

from ccq_core import CCQ, CodeIndex
from ccq_core.features import check_features
from ccq_core.partners import find_partners
from tests.core.conftest import make_pairs


@pytest.fixture(scope="module")
def unseen():
    data = make_pairs(330, seed=77, dims=(12, 8, 6))
    for i, array in enumerate(data.values()):
        array[i::7] = np.nan
    return check_features(data)


def ranks_by_search(model, features, a, b, order, metric=None):
    """Places of the partners of some objects, by ascending object, where the items were indexed in this order."""
    index = CodeIndex(model)
    index.add(order.tolist(), model.encode({b: features.arrays[b][order]}))
    both = np.sort(order)
    hits = index.search({a: features.arrays[a][both]}, k=len(both), metric=metric)
    return 1 + np.argmax(hits.ids.astype(np.int64) == both[:, None], axis=1)


@pytest.mark.parametrize("settings", [{}, {"metric": "euclidean"}, {"norm": "none"}])
def test_every_direction_is_what_a_search_finds(unseen, settings):
    model = CCQ(bits=16, iterations=4, seed=2, **settings).fit(make_pairs(400, dims=(12, 8, 6)))
    told = []
    found = list(find_partners(model, unseen, lambda done, total: told.append((done, total))))
    assert [(d.query, d.database) for d in found] == [
        (a, b) for a in ("image", "text", "audio") for b in ("image", "text", "audio") if a != b
    ]
    assert told[-1][0] == told[-1][1] == sum(d.objects for d in found)
    for direction in found:
        a, b = direction.query, direction.database
        both = np.flatnonzero(unseen.present[a] & unseen.present[b])
        assert direction.objects == len(both)
        # Equal distances go by order of insertion: the mean over an order and its reverse counts them half.
        ranks = np.mean([ranks_by_search(model, unseen, a, b, order) for order in (both, both[::-1])], axis=0)
        assert direction.codes.mean_rank == pytest.approx(ranks.mean())
        for k, share in direction.codes.recall.items():
            assert share == pytest.approx((ranks <= k).mean())
        z, y = model.project({a: unseen.arrays[a][both]}), model.project({b: unseen.arrays[b][both]})
        if model.metric == "cosine":
            apart = -(z @ y.T) / np.linalg.norm(y, axis=1)
        else:
            apart = np.square(z[:, None] - y).sum(axis=2)
        exact = 1 + (apart < np.diag(apart)[:, None]).sum(axis=1)
        assert direction.floats.mean_rank == pytest.approx(exact.mean(), rel=0.01)
        assert direction.floats.mean_rank < direction.codes.mean_rank < len(both) / 4
        assert 0 < direction.codes.recall[1] <= direction.codes.recall[10] <= direction.codes.recall[100] <= 1


def test_another_metric_than_the_models(unseen):
    model = CCQ(bits=16, iterations=4, seed=2).fit(make_pairs(400, dims=(12, 8, 6)))
    direction, own = (next(find_partners(model, unseen, metric=metric)) for metric in ("euclidean", None))
    both = np.flatnonzero(unseen.present["image"] & unseen.present["text"])
    ranks = [ranks_by_search(model, unseen, "image", "text", order, "euclidean") for order in (both, both[::-1])]
    assert direction.codes.mean_rank == pytest.approx(np.mean(ranks))
    assert direction.codes.mean_rank != own.codes.mean_rank
    assert direction.floats.mean_rank != own.floats.mean_rank


def test_equal_items_count_half(model):
    same = np.ones((5, 12)), np.ones((5, 8))
    for direction in find_partners(model, check_features(dict(zip(("image", "text"), same, strict=True)))):
        assert direction.codes.mean_rank == direction.floats.mean_rank == 3.0
        assert direction.codes.recall == {1: 0.0, 10: 1.0, 100: 1.0}


def test_where_no_object_has_both_there_is_nothing_to_tell(model):
    image, text = np.ones((2, 12)), np.ones((2, 8))
    image[0], text[1] = np.nan, np.nan
    assert list(find_partners(model, check_features({"image": image, "text": text}))) == []
