"""Any filter that the model allows, on either kind of vector store: it filters, or it is refused by its clause."""

from typing import Any

import pytest
from botocore.model import Shape
from hypothesis import given
from hypothesis import strategies as st

from ragstack_common.ingestion.requests import text_document
from tests.conformance import answers
from tests.conformance.exchange import Wire
from tests.conformance.models import implemented
from tests.conformance.settings import SETTINGS
from tests.conformance.values import values
from tests.conformance.world import TEXTS, World
from tests.local_bedrock.support import S3_VECTORS


@pytest.fixture(scope="module")
def on_s3_vectors(world: World) -> str:
    knowledge_base_id = world.bedrock.knowledge_base("filters-on-s3-vectors", S3_VECTORS)
    source = world.bedrock.custom_source(knowledge_base_id)
    source.ingested(*(text_document(name, text, {"animal": name}) for name, text in TEXTS.items()))
    return knowledge_base_id


@pytest.mark.parametrize("vector_store", ["OPENSEARCH_SERVERLESS", "S3_VECTORS"])
@given(data=st.data())
@SETTINGS
def test_any_filter_is_followed_or_refused(
    vector_store: str, wire: Wire, world: World, on_s3_vectors: str, data: st.DataObject
) -> None:
    filters = data.draw(values(_filter_shape(), world.known), "filter")

    exchange = _asked(wire, on_s3_vectors if vector_store == "S3_VECTORS" else world.knowledge_base_id, filters)

    assert answers.faults(exchange) == []
    assert exchange.succeeded or "filter" in exchange.message or vector_store in exchange.message


@given(data=st.data())
@SETTINGS
def test_a_filter_and_its_opposite_divide_the_documents(wire: Wire, world: World, data: st.DataObject) -> None:
    key = data.draw(world.known["key"], "key")
    value = data.draw(st.sampled_from([*TEXTS, 5, 7, True, False, 0.5, ""]), "value")

    with_it = _asked(wire, world.knowledge_base_id, {"equals": {"key": key, "value": value}})
    without = _asked(wire, world.knowledge_base_id, {"notEquals": {"key": key, "value": value}})
    everything = _asked(wire, world.knowledge_base_id, None)

    assert _texts(with_it) | _texts(without) == _texts(everything)
    assert not _texts(with_it) & _texts(without)


def _filter_shape() -> Shape:
    return implemented()["Retrieve"].service_model.shape_for("RetrievalFilter")


def _asked(wire: Wire, knowledge_base_id: str, filters: Any) -> Any:
    configuration = {"numberOfResults": 100, **({} if filters is None else {"filter": filters})}
    return wire.send(
        implemented()["Retrieve"],
        {
            "knowledgeBaseId": knowledge_base_id,
            "retrievalQuery": {"text": "animal"},
            "retrievalConfiguration": {"vectorSearchConfiguration": configuration},
        },
    )


def _texts(exchange: Any) -> set[str]:
    return {result["content"]["text"] for result in exchange.document["retrievalResults"]}
