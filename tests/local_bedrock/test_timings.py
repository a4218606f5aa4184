from pathlib import Path

import pytest

from local_bedrock.ingestion.preparation import Timings
from local_bedrock.operations import ingestion, resources
from local_bedrock.options import Options
from local_bedrock.service import Service
from tests.local_bedrock.support import knowledge_base_request, text_document, wait_for


def test_a_stage_is_measured_whether_or_not_it_succeeds() -> None:
    moments = iter([1.0, 3.0, 10.0, 10.5])
    timings = Timings(clock=lambda: next(moments))

    with timings.measured("parse"):
        pass
    with pytest.raises(ValueError, match="broken"), timings.measured("parse"):
        raise ValueError("broken")
    timings.count(chunks=7)

    found = timings.snapshot()
    assert found["parse_seconds"] == 2.5
    assert (found["documents"], found["chunks"]) == (1, 7)
    assert found["read_seconds"] == found["chunk_seconds"] == found["embed_seconds"] == found["store_seconds"] == 0


def test_an_ingestion_tells_where_its_time_went(tmp_path: Path) -> None:
    service = Service(Options(tmp_path))
    service.start()
    context = service._context
    made = resources.create_knowledge_base(context, knowledge_base_request("timed"))
    ids = {"knowledgeBaseId": made["knowledgeBase"]["knowledgeBaseId"]}
    source = resources.create_data_source(
        context, {**ids, "name": "custom", "dataSourceConfiguration": {"type": "CUSTOM"}}
    )
    ids["dataSourceId"] = source["dataSource"]["dataSourceId"]

    ingestion.ingest_documents(
        context, {**ids, "documents": [text_document(str(n), f"Heron {n} stands.") for n in range(3)]}
    )

    wait_for(lambda: context.ingestion.timings.snapshot()["documents"] == 3)
    service.close()
    found = context.ingestion.timings.snapshot()
    assert found["chunks"] == 3
    assert all(found[f"{stage}_seconds"] > 0 for stage in ("read", "parse", "chunk", "embed", "store"))
