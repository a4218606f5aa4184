"""Checks of ingestion into a knowledge base on S3 Vectors: jobs, direct ingestion, statuses and files."""

from collections.abc import Sequence
from typing import Any, Final

from botocore.exceptions import ClientError

from ragstack_common.ingestion.bedrock_agent import CONTENTION
from ragstack_common.ingestion.requests import CUSTOM, document_identifier, text_document
from ragstack_common.text.positions import PAGE_KEY
from ragstack_local.certify import documents
from ragstack_local.certify.check import INVALID, Json, NotTried, Source, Topic
from ragstack_local.certify.fixtures import (
    create_knowledge_base,
    created,
    identifiers,
    index_for_chunks,
    ingested,
    knowledge_base,
    objects,
    on_index,
    request_for,
    unknown_statuses,
)
from ragstack_local.certify.services.retrieval import find, texts_found
from ragstack_local.certify.site import Site, error_code

ON: Final = Topic("ingestion", "ingestion (docs/DOCUMENTS.md)", "local_bedrock.operations.ingestion")
FILES: Final = "conversion and reading of files (docs/DOCUMENTS.md#what-is-read)"
READING: Final = "local_bedrock.reading"

FINDABLE_SECONDS: Final = 60.0
GONE_SECONDS: Final = 5.0


def within(seconds: float, limits: Sequence[float] = (5, 30, 120, 600)) -> str:
    """Return the class of a duration."""
    return next((f"within {limit:g} s" for limit in limits if seconds <= limit), "longer")


@ON.check(
    "creation",
    "A knowledge base can be created on an S3 Vectors index that is configured as in the stacks",
    Source.DOCUMENTATION,
    "ACTIVE",
    used_by="all stacks",
    held_in="local_bedrock.operations.resources",
)
def _creation(site: Site) -> Json:
    return created(site, knowledge_base)["status"]


@ON.check(
    "creation_time",
    "A knowledge base on S3 Vectors is ACTIVE within two minutes of its creation",
    Source.GUESS,
    "within 120 s",
    used_by="all stacks",
    held_in="local_bedrock.operations.resources",
)
def _creation_time(site: Site) -> Json:
    return within(site.shared(knowledge_base).creation_seconds, (120, 600))


@ON.check(
    "first_job",
    "An ingestion job of an empty bucket ends as COMPLETE and scans nothing",
    Source.GUESS,
    {"status": "COMPLETE", "scanned": 0},
    used_by="output FirstSync",
    held_in="local_bedrock.ingestion.synchronisation",
)
def _first_job(site: Site) -> Json:
    job = site.shared(knowledge_base).first_job
    return {"status": job["status"], "scanned": job["statistics"]["numberOfDocumentsScanned"]}


@ON.check(
    "before_first_job",
    "An S3 data source refuses direct ingestion before its first ingestion job",
    Source.THIRD_PARTY,
    "not INDEXED",
    used_by="output FirstSync",
    aws_only="the local Bedrock accepts documents at once",
)
def _before_first_job(site: Site) -> Json:
    site.shared(objects)
    source = site.shared(knowledge_base).jobs
    try:
        source.ingest([request_for(site, documents.EARLY_KEY)])
    except ClientError:
        return "not INDEXED"
    (status,) = source.settled(identifiers(site, [documents.EARLY_KEY]))
    return "INDEXED" if status == "INDEXED" else "not INDEXED"


@ON.check(
    "after_first_job",
    "An S3 data source accepts direct ingestion after one ingestion job, even if that job found nothing",
    Source.THIRD_PARTY,
    ["INDEXED"],
    used_by="output FirstSync",
)
def _after_first_job(site: Site) -> Json:
    statuses = site.shared(ingested)
    return sorted({statuses[f"{documents.ANIMAL_PREFIX}{letter}.md"] for letter in documents.ANIMALS})


@ON.check(
    "statuses",
    "Documents have no other statuses than those in the service model",
    Source.MODEL,
    [],
    used_by="states of documents, reconciliation",
)
def _statuses(site: Site) -> Json:
    """Those that it does not know."""
    site.shared(ingested)
    return unknown_statuses(site, site.shared(knowledge_base).id)


@ON.check(
    "findable",
    "Searches find a document within five seconds after its status is INDEXED",
    Source.THIRD_PARTY,
    "within 5 s",
    used_by="`ragstack ingest`, `ragstack doctor`, statuses of documents",
)
def _findable(site: Site) -> Json:
    texts, name = site.shared(knowledge_base).texts, "findable"
    site.shared(ingested)
    texts.ingest([text_document(name, "The lighthouse keeper paints the gallery.")])
    texts.settled([document_identifier(name, CUSTOM)])
    start = site.clock()
    site.eventually(
        lambda: any(name in str(each["location"]) for each in find(site, "lighthouse keeper gallery")),
        "the document to be found",
        FINDABLE_SECONDS,
    )
    return within(site.clock() - start)


@ON.check(
    "per_call",
    "IngestKnowledgeBaseDocuments takes ten documents in a call, and refuses eleven",
    Source.MODEL,
    ["accepted", INVALID],
    used_by="the ingestion path",
)
def _per_call(site: Site) -> Json:
    site.shared(ingested)
    texts = site.shared(knowledge_base).texts
    client = site.client("bedrock-agent", validates=False)

    def ingest(number: int) -> Json:
        some = [text_document(f"of-{number}-{each}", f"Note {each}.") for each in range(number)]
        return error_code(lambda: client.ingest_knowledge_base_documents(**texts.ids, documents=some))

    found = [ingest(10), ingest(11)]
    texts.settled([document_identifier(f"of-10-{each}", CUSTOM) for each in range(10)])
    return found


@ON.check(
    "twice_in_call", "A document may occur only once in a call of IngestKnowledgeBaseDocuments", Source.GUESS, INVALID
)
def _twice_in_call(site: Site) -> Json:
    texts = site.shared(knowledge_base).texts
    twice = [text_document("twice", "Note.")] * 2
    client = site.client("bedrock-agent")
    return error_code(lambda: client.ingest_knowledge_base_documents(**texts.ids, documents=twice))


@ON.check("wrong_type", "An S3 data source refuses a document of type CUSTOM", Source.DOCUMENTATION, INVALID)
def _wrong_type(site: Site) -> Json:
    files, some = site.shared(knowledge_base).files, [text_document("wrong", "Note.")]
    client = site.client("bedrock-agent")
    return error_code(lambda: client.ingest_knowledge_base_documents(**files.ids, documents=some))


@ON.check(
    "unknown",
    "GetKnowledgeBaseDocuments reports an unknown document as NOT_FOUND",
    Source.MODEL,
    ["NOT_FOUND"],
    used_by="reconciliation",
)
def _unknown(site: Site) -> Json:
    site.shared(ingested)
    return site.shared(knowledge_base).files.statuses(identifiers(site, ["files/never-there.md"]))


@ON.check(
    "missing_object",
    "Direct ingestion of a document that is not in the bucket ends as FAILED",
    Source.GUESS,
    ["FAILED"],
)
def _missing_object(site: Site) -> Json:
    site.shared(ingested)
    files = site.shared(knowledge_base).files
    files.ingest([request_for(site, "files/missing.md")])
    return files.settled(identifiers(site, ["files/missing.md"]))


@ON.check(
    "deletion",
    "A deleted document becomes NOT_FOUND, and searches no longer find it",
    Source.MODEL,
    ["NOT_FOUND", "not found"],
)
def _deletion(site: Site) -> Json:
    site.shared(ingested)
    texts = site.shared(knowledge_base).texts
    identifier = document_identifier("deleted", CUSTOM)
    texts.ingest([text_document("deleted", "The anchor chain has nine shackles.")])
    texts.settled([identifier])
    site.client("bedrock-agent").delete_knowledge_base_documents(**texts.ids, documentIdentifiers=[identifier])
    site.eventually(lambda: texts.statuses([identifier]) == ["NOT_FOUND"], "the document to be gone")

    def is_gone() -> bool:
        return not any("deleted" in str(each["location"]) for each in find(site, "anchor chain shackles"))

    try:
        site.eventually(is_gone, "the document not to be found", GONE_SECONDS)
    except TimeoutError:
        return [*texts.statuses([identifier]), "found"]
    return [*texts.statuses([identifier]), "not found"]


@ON.check(
    "second_job",
    "Starting an ingestion job while another one runs is a ConflictException",
    Source.MODEL,
    {"error": "ConflictException"},
    used_by="reconciliation",
    held_in="local_bedrock.operations.ingestion",
)
def _second_job(site: Site) -> Json:
    site.shared(objects)
    source = site.shared(knowledge_base).jobs
    job = source.start_job()
    answer = error_code(source.start_job)
    source.ended_job(job)
    return answer


@ON.check(
    "during_job",
    "Direct ingestion during a job is a ValidationException whose message says that a job is ongoing or running",
    Source.THIRD_PARTY,
    {"error": "ValidationException", "says": True},
    used_by="the ingestion path, which tries again",
)
def _during_job(site: Site) -> Json:
    site.shared(objects)
    source = site.shared(knowledge_base).jobs
    job = source.start_job()
    try:
        source.ingest([request_for(site, documents.JOB_KEYS[0])])
    except ClientError as error:
        message = error.response["Error"]["Message"]
        says = any(word in message for word in CONTENTION)
        return {"error": error.response["Error"]["Code"], "says": says}
    finally:
        source.ended_job(job)
    return "accepted"


@ON.check(
    "job_statistics",
    "The statistics of an ingestion job count documents without their sidecars",
    Source.MODEL,
    len(documents.JOB_KEYS) + 1,
    used_by="reconciliation",
    held_in="local_bedrock.ingestion.synchronisation",
)
def _job_statistics(site: Site) -> Json:
    site.shared(objects)
    source = site.shared(knowledge_base).jobs
    return source.ended_job(source.start_job())["statistics"]["numberOfDocumentsScanned"]


def _status(site: Site, key: str) -> Json:
    return site.shared(ingested)[key]


@ON.check(
    "ascii_text",
    "The text of ASCII text files (.txt) is found",
    Source.DOCUMENTATION,
    1,
    used_by=FILES,
    held_in=READING,
)
def _ascii_text(site: Site) -> Json:
    return texts_found(site, documents.ASCII_WORD)


@ON.check(
    "utf8_text",
    "The text of UTF-8 text files (.txt) is found, also non-ASCII words",
    Source.GUESS,
    1,
    used_by=FILES,
    held_in=READING,
)
def _utf8_text(site: Site) -> Json:
    return texts_found(site, documents.UTF8_WORD)


@ON.check(
    "utf8_markdown",
    "The text of UTF-8 Markdown files (.md) is found, also Chinese",
    Source.THIRD_PARTY,
    1,
    used_by=FILES,
    held_in=READING,
)
def _utf8_markdown(site: Site) -> Json:
    return texts_found(site, documents.CHINESE_TEXT)


@ON.check(
    "html",
    "The text of HTML files is found without the tags",
    Source.DOCUMENTATION,
    [1, 0],
    used_by=FILES,
    held_in=READING,
)
def _html(site: Site) -> Json:
    return [texts_found(site, "The tide gauge stands at pier seven"), texts_found(site, "<p>The tide gauge")]


@ON.check(
    "csv",
    "The text of CSV files is found, without a sidecar that describes their columns",
    Source.DOCUMENTATION,
    1,
    used_by=FILES,
    held_in=READING,
)
def _csv(site: Site) -> Json:
    return texts_found(site, "eleven metres")


@ON.check(
    "pages",
    "Chunks of PDF files have a page number, which counts from one",
    Source.THIRD_PARTY,
    [1, 2],
    used_by="pages of citations (docs/SEARCH.md)",
    held_in="local_bedrock.reading.chunking",
)
def _pages(site: Site) -> Json:
    """The numbers of the first chunk of each page."""
    site.shared(ingested)
    numbers = []
    for word in documents.PAGE_WORDS:
        found = [each["metadata"] for each in find(site, f"{word} of the ship") if documents.PDF_KEY in str(each)]
        of_word = [each.get(PAGE_KEY) for each in found]
        numbers.append(of_word[0] if of_word else None)
    return [None if number is None else int(number) for number in numbers]


@ON.check(
    "large_metadata",
    "A document with more than 1 KB of attributes is FAILED on S3 Vectors",
    Source.DOCUMENTATION,
    "FAILED",
    used_by="sidecars (docs/DOCUMENTS.md#attributes)",
    held_in="local_bedrock.ingestion.preparation",
)
def _large_metadata(site: Site) -> Json:
    return _status(site, documents.LARGE_METADATA_KEY)


@ON.check(
    "many_attributes",
    "A document with more than 35 attributes is FAILED on S3 Vectors",
    Source.DOCUMENTATION,
    "FAILED",
    used_by="sidecars (docs/DOCUMENTS.md#attributes)",
    held_in="local_bedrock.ingestion.preparation",
)
def _many_attributes(site: Site) -> Json:
    return _status(site, documents.MANY_ATTRIBUTES_KEY)


@ON.check(
    "unsupported_file",
    "A file of an unsupported type is FAILED",
    Source.GUESS,
    "FAILED",
    used_by="statuses of documents",
    held_in="local_bedrock.ingestion.preparation",
)
def _unsupported_file(site: Site) -> Json:
    return _status(site, documents.UNSUPPORTED_KEY)


def _creates(site: Site, part: str, model: str, **embedding: Any) -> Json:
    if site.is_aws:
        found = site.client("bedrock").get_foundation_model_availability(modelId=model)
        if found["regionAvailability"] != "AVAILABLE":
            raise NotTried(f"the Region does not have {model}")
    index = index_for_chunks(site, part)
    id_, _ = create_knowledge_base(site, part, **on_index(site, index, model, **embedding))
    return site.client("bedrock-agent").get_knowledge_base(knowledgeBaseId=id_)["knowledgeBase"]["status"]


@ON.check(
    "nova",
    "A knowledge base on S3 Vectors can use the Nova embedding model with 1,024 dimensions",
    Source.GUESS,
    "ACTIVE",
    used_by="`embedding`",
    held_in="local_bedrock.operations.resources",
)
def _nova(site: Site) -> Json:
    configuration = {"bedrockEmbeddingModelConfiguration": {"dimensions": 1024}}
    model = "amazon.nova-2-multimodal-embeddings-v1:0"
    return _creates(site, site.unused("nova"), model, embeddingModelConfiguration=configuration)


@ON.check(
    "cohere",
    "A knowledge base on S3 Vectors can use a Cohere embedding model without `dimensions`",
    Source.GUESS,
    "ACTIVE",
    used_by="`embedding`",
    held_in="local_bedrock.operations.resources",
)
def _cohere(site: Site) -> Json:
    return _creates(site, site.unused("cohere"), "cohere.embed-multilingual-v3")


CHECKS: Final = tuple(ON.checks)
