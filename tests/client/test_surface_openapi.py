"""Every operation of the service has a verb, or a reason why it has none."""

import json
from contextlib import suppress
from dataclasses import fields
from pathlib import Path

import httpx
import numpy as np
import pytest

import ccq_client
from ccq_client import CCQError, Client, Job, Limits
from tests.client.kinds import DEFAULT_LIMITS

DOCUMENT = json.loads((Path(__file__).parents[2] / "openapi/openapi.json").read_text(encoding="utf-8"))
WITHOUT = {
    "operations_livez": "for those that restart processes",
    "operations_metrics": "for Prometheus",
}
CALLS = (
    lambda c: c.aliases.set("A", "C"),
    lambda c: c.aliases.get("A"),
    lambda c: c.aliases.list(),
    lambda c: c.aliases.delete("A"),
    lambda c: c.collections.create("C", "M"),
    lambda c: c.collections.get("C"),
    lambda c: c.collections.list(),
    lambda c: c.collections.delete("C"),
    lambda c: c.collections.reencode("C", "M"),
    lambda c: c.collections.usage("C"),
    lambda c: c.collections.map("C", sample=9, label="L"),
    lambda c: c.models.upload("M", b"file"),
    lambda c: c.models.get("M"),
    lambda c: c.models.list(),
    lambda c: c.models.delete("M"),
    lambda c: c.models.train("M", collection="C"),
    lambda c: c.jobs.list(),
    lambda c: c.jobs.get("J"),
    lambda c: c.jobs.forget("J"),
    lambda c: c.snapshots.create(),
    lambda c: c.snapshots.list(),
    lambda c: c.snapshots.download("S", "/dev/null"),
    lambda c: c.snapshots.delete("S"),
    lambda c: c.caller(),
    lambda c: c.limits(),
    lambda c: c.version(),
    lambda c: c.ready(),
    lambda c: c.index(["I"], {"text": np.ones((1, 2))}),
    lambda c: c.search(by_id="I"),
    lambda c: c.facets("K"),
    lambda c: c.count(),
    lambda c: c.get("I"),
    lambda c: c.item_page(),
    lambda c: c.set_payload("I", None),
    lambda c: c.delete(["I"]),
    lambda c: c.delete(["I"], if_match=3),
)
NAMES = {"{alias}": "A", "{collection}": "C", "{model}": "M", "{job}": "J", "{snapshot}": "S", "{id}": "I"}


def test_every_operation_has_a_verb_or_a_reason():
    asked = set()

    def answer(request):
        asked.add((request.method, request.url.path))
        return httpx.Response(400, json={})

    with Client("http://x", collection="C", transport=httpx.MockTransport(answer), check_version=False) as client:
        client._connection._limits = DEFAULT_LIMITS
        for call in CALLS:
            with suppress(CCQError):
                call(client)
    missing = set()
    for path, methods in DOCUMENT["paths"].items():
        concrete = path
        for name, value in NAMES.items():
            concrete = concrete.replace(name, value)
        # Those without a collection in their path are the same of the collection `default`.
        ways = {concrete, f"/collections/C{concrete}"}
        for method, operation in methods.items():
            if not asked & {(method.upper(), way) for way in ways}:
                missing.add(operation["operationId"])
    assert missing == set(WITHOUT)


@pytest.mark.parametrize(
    ("schema", "cls"),
    [
        ("AliasInfo", ccq_client.Alias),
        ("CallerInfo", ccq_client.Caller),
        ("CollectionInfo", ccq_client.Collection),
        ("DeleteReply", ccq_client.Deleted),
        ("EncoderInfo", ccq_client.Encoder),
        ("FacetReply", ccq_client.Facets),
        ("FacetValue", ccq_client.Facet),
        ("Hit", ccq_client.Hit),
        ("JobInfo", Job),
        ("LatentMap", ccq_client.LatentMap),
        ("Limits", Limits),
        ("MapPoint", ccq_client.MapPoint),
        ("ModalityInfo", ccq_client.Modality),
        ("ModelInfo", ccq_client.Model),
        ("PayloadReply", ccq_client.PayloadSet),
        ("SnapshotInfo", ccq_client.Snapshot),
        ("ListedItem", ccq_client.Item),
        ("Usage", ccq_client.Usage),
    ],
)
def test_results_have_what_replies_have(schema, cls):
    assert {field.name for field in fields(cls)} == set(DOCUMENT["components"]["schemas"][schema]["properties"])


def test_limits_of_an_older_service_are_read():
    old = {
        "max_body_bytes": 1,
        "max_model_bytes": 2,
        "max_payload_bytes": 3,
        "max_batch_items": 4,
        "max_batch_queries": 5,
    }
    old |= {"max_limit": 6, "max_results": 7, "max_brackets": 8, "request_seconds": 9.0, "dimensions": {}}
    transport = httpx.MockTransport(lambda request: httpx.Response(200, json=old))
    with Client("http://x", transport=transport, check_version=False) as client:
        assert client.limits() == Limits(**old)


def test_the_newer_verbs(filled):
    assert (filled.caller().name, filled.caller().collections) == ("anyone", None)
    usage = filled.collections.usage("default")
    assert usage.rows == sum(sum(uses) for uses in usage.codebooks) // len(usage.codebooks)
    drawn = filled.collections.map("default", sample=20, label="n")
    assert 0 < len(drawn) <= 20
    assert all(point.label == point.id.removeprefix("item-") for point in drawn)
    limits = filled.limits()
    assert limits.max_id_bytes == 512
    assert limits.encoders["emoji"].takes == "text"
    item = filled.get("item-3")
    filled.set_payload("item-3", {"n": 1})
    with pytest.raises(CCQError, match="version"):
        filled.delete(["item-3"], if_match=item.version)
    assert filled.delete(["item-3"], if_match=filled.get("item-3").version).deleted == 1
    for wrong in ({"ids": ["a", "b"]}, {"filter": {}}, {"ids": ["a"], "idempotency_key": "k"}):
        with pytest.raises(CCQError, match="if_match: expected a list of one id"):
            filled.delete(**wrong, if_match=1)
