from pathlib import Path

from local_bedrock.operations import ingestion, resources
from local_bedrock.options import Options
from local_bedrock.service import Service
from tests.local_bedrock.support import knowledge_base_request, text_document, wait_for


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
