"""Two short documents, and a question that one of them answers."""

from typing import Any

from ragstack_common.ingestion.requests import text_document
from tests.local_bedrock.support import TEXT_MODEL, Bedrock, Source

LEAVE = "# Leave\n\nEvery employee has 27 days of annual leave. Book it in the calendar.\n"
CANTEEN = "The canteen opens at noon. It serves fish on Fridays."
QUESTION = "How many days of annual leave does an employee have?"
ANSWER = "Every employee has 27 days of annual leave."


def fill(bedrock: Bedrock) -> Source:
    source = bedrock.custom_source(bedrock.knowledge_base("answers"))
    source.ingested(
        text_document("leave", LEAVE, {"topic": "leave"}), text_document("canteen", CANTEEN, {"topic": "food"})
    )
    return source


def request(
    knowledge_base_id: str, question: str = QUESTION, model: str = TEXT_MODEL, **configuration: Any
) -> dict[str, Any]:
    return {
        "input": {"text": question},
        "retrieveAndGenerateConfiguration": {
            "type": "KNOWLEDGE_BASE",
            "knowledgeBaseConfiguration": {
                "knowledgeBaseId": knowledge_base_id,
                "modelArn": model,
                **configuration,
            },
        },
    }


def sources(citation: dict[str, Any]) -> list[str]:
    return [reference["location"]["customDocumentLocation"]["id"] for reference in citation["retrievedReferences"]]
