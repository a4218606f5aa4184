"""Checks of rates: bounded bursts of calls above what a service allows. They run alone, after all others."""

import itertools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from botocore.exceptions import ClientError

from ragstack_common.ingestion.bedrock_agent import CONTENTION
from ragstack_common.ingestion.requests import text_document
from ragstack_local.certify.check import Json, Source, Topic
from ragstack_local.certify.fixtures import identifiers, ingested, knowledge_base
from ragstack_local.certify.runner import LIMITS
from ragstack_local.certify.services.managed_fixtures import ingested as managed_ingested
from ragstack_local.certify.services.managed_fixtures import managed
from ragstack_local.certify.site import Site, error_code

ON: Final = Topic(LIMITS, "throttles of the API, repeated calls", "local_bedrock.limits.quotas")

UNLIMITED: Final = "the local Bedrock has no limits, unless it is started with --quotas"
THREADS: Final = 40


def burst(call: Callable[[], object], number: int) -> Json:
    """Send calls at once; return the codes of errors, and whether some were accepted."""
    with ThreadPoolExecutor(THREADS) as threads:
        found = [each.result() for each in [threads.submit(error_code, call) for _ in range(number)]]
    codes = sorted({each["error"] for each in found if each != "accepted"})
    return {"errors": codes, "accepted": "accepted" in found}


_THROTTLED: Final = {"errors": ["ThrottlingException"], "accepted": True}


def _retrieve(site: Site, knowledge_base_id: str) -> Callable[[], Any]:
    client = site.client("bedrock-agent-runtime", attempts=1)
    return lambda: client.retrieve(knowledgeBaseId=knowledge_base_id, retrievalQuery={"text": "crane"})


@ON.check(
    "retrieve",
    "Above 20 calls of Retrieve a second, some are answered with ThrottlingException",
    Source.THIRD_PARTY,
    _THROTTLED,
    aws_only=UNLIMITED,
)
def _burst_of_retrieve(site: Site) -> Json:
    site.shared(ingested)
    return burst(_retrieve(site, site.shared(knowledge_base).id), 120)


@ON.check(
    "retrieve_managed",
    "Above 25 calls of Retrieve a second on managed knowledge bases, some are answered with ThrottlingException",
    Source.DOCUMENTATION,
    _THROTTLED,
    aws_only=UNLIMITED,
)
def _burst_of_managed(site: Site) -> Json:
    site.shared(managed_ingested)
    return burst(_retrieve(site, site.shared(managed).id), 120)


@ON.check(
    "get_documents",
    "Above 5 calls of GetKnowledgeBaseDocuments a second, some are answered with ThrottlingException",
    Source.DOCUMENTATION,
    _THROTTLED,
    used_by="the ingestion path",
    aws_only=UNLIMITED,
)
def _burst_of_get_documents(site: Site) -> Json:
    site.shared(ingested)
    files, some = site.shared(knowledge_base).files, identifiers(site, ["files/ascii.txt"])
    client = site.client("bedrock-agent", attempts=1)
    return burst(lambda: client.get_knowledge_base_documents(**files.ids, documentIdentifiers=some), 40)


@ON.check(
    "ingest_documents",
    "Too many calls of direct ingestion fail with errors that RAGStack retries",
    Source.DOCUMENTATION,
    {"errors": ["tried again"], "accepted": True},
    used_by="the ingestion path",
    aws_only=UNLIMITED,
)
def _burst_of_ingestion(site: Site) -> Json:
    site.shared(ingested)
    texts, numbers = site.shared(knowledge_base).texts, itertools.count()
    client = site.client("bedrock-agent", attempts=1)

    def ingest() -> str:
        some = [text_document(f"burst-{next(numbers)}", "Note.")]
        try:
            client.ingest_knowledge_base_documents(**texts.ids, documents=some)
        except ClientError as error:
            code = str(error.response["Error"]["Code"])
            waits = any(word in error.response["Error"]["Message"] for word in CONTENTION)
            return "tried again" if code == "ThrottlingException" or waits else code
        return "accepted"

    with ThreadPoolExecutor(THREADS) as threads:
        found = {each.result() for each in [threads.submit(ingest) for _ in range(30)]}
    return {"errors": sorted(found - {"accepted"}), "accepted": "accepted" in found}


CHECKS: Final = tuple(ON.checks)
