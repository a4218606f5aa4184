"""Faults: what each check of the services must notice, put between botocore and the local Bedrock."""

import copy
import io
import itertools
import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

from ragstack_local.account import quotas
from ragstack_local.certify import documents, fixtures
from ragstack_local.certify.check import INVALID, Check
from ragstack_local.certify.services import account, managed_fixtures
from ragstack_local.certify.site import Site

Params = dict[str, Any]
Parsed = dict[str, Any]


@dataclass(frozen=True)
class Fault:
    """A changed fact.

    Attributes:
        request: Changes the parameters of a call, by the operation's name.
        response: Changes the answer of a call in place, by the operation's name.
        accepts: Operations whose errors become empty answers.
        refuses: Codes of the errors that operations answer instead.
        codes: Codes of the errors of operations, in place of the real ones.
        instead: Answers of operations that are not sent at all; an exception is raised.
        remakes: Fixtures that are made again while the fact is changed.
        forgets: Fixtures that are made again, now and afterwards.
        made: Values of fixtures.
        takes: Seconds of the site's clock that pass with each answer that is changed.
    """

    request: Mapping[str, Callable[[Params], Params | None]] = field(default_factory=dict)
    response: Mapping[str, Callable[[Parsed], object]] = field(default_factory=dict)
    accepts: tuple[str, ...] = ()
    refuses: Mapping[str, str] = field(default_factory=dict)
    codes: Mapping[str, str] = field(default_factory=dict)
    instead: Mapping[str, Callable[[Params], Parsed]] = field(default_factory=dict)
    remakes: tuple[Callable[[Site], Any], ...] = ()
    forgets: tuple[Callable[[Site], Any], ...] = ()
    made: Mapping[Callable[[Site], Any], Callable[[Any], Any]] = field(default_factory=dict)
    takes: float = 0.0


class Facts:
    """The facts of a session, of which one can be changed at a time."""

    def __init__(self) -> None:
        self._fault = Fault()
        self._passed = 0.0

    def clock(self) -> float:
        """Return the seconds of the site's clock, which no test waits for."""
        return time.monotonic() + self._passed

    def watch(self, session: Any) -> None:
        """Put itself between all clients of a session and the service."""
        session.events.register("provide-client-params", self._params)
        session.events.register_first("before-call", self._before)
        session.events.register("after-call", self._after)

    @contextmanager
    def changed(self, fault: Fault, site: Site) -> Iterator[None]:
        for fixture in fault.forgets:
            site._made.pop(fixture, None)
        kept, statuses = dict(site._made), copy.deepcopy(site.statuses)
        for fixture in fault.remakes:
            site._made.pop(fixture)
        for fixture, change in fault.made.items():
            site._made[fixture] = change(kept[fixture])
        self._fault = fault
        try:
            yield
        finally:
            self._fault = Fault()
            site._made.update(kept)
            site.statuses = statuses

    def _params(self, params: Params, model: Any, **_: Any) -> Params | None:
        change = self._fault.request.get(model.name)
        return change(params) if change else None

    def _before(self, model: Any, params: Params, **_: Any) -> Any:
        answer = self._fault.instead.get(model.name)
        if answer is None:
            return None
        parsed = answer(params)
        return SimpleNamespace(status_code=400 if "Error" in parsed else 200, headers={}), parsed

    def _after(self, http_response: Any, parsed: Parsed, model: Any, **_: Any) -> None:
        if model.name in self._fault.accepts and "Error" in parsed:
            del parsed["Error"]
            http_response.status_code = 200
            parsed.update({"vectors": [], "retrievalResults": [], "stream": []})
        elif model.name in self._fault.codes and "Error" in parsed:
            parsed["Error"]["Code"] = self._fault.codes[model.name]
        elif model.name in self._fault.refuses:
            parsed["Error"] = {"Code": self._fault.refuses[model.name], "Message": "changed"}
            http_response.status_code = 400
        elif model.name in self._fault.response and "Error" not in parsed:
            self._fault.response[model.name](parsed)
            self._passed += self._fault.takes


def response(operation: str, change: Callable[[Parsed], object], **more: Any) -> Fault:
    return Fault(response={operation: change}, **more)


def error(code: str) -> Callable[[Params], Parsed]:
    return lambda _: {"Error": {"Code": code, "Message": "as on AWS"}}


def _without(name: str) -> Callable[[Params], Params]:
    return lambda params: {key: value for key, value in params.items() if key != name}


def _without_filter(params: Params) -> Params:
    configuration = {
        kind: {key: value for key, value in search.items() if key != "filter"}
        for kind, search in params["retrievalConfiguration"].items()
    }
    return {**params, "retrievalConfiguration": configuration}


IGNORED_FILTER = Fault(request={"QueryVectors": _without("filter"), "Retrieve": _without_filter})
"""The service ignores filters: everything is found."""

NOTHING_FOUND = Fault(
    response={
        "QueryVectors": lambda parsed: parsed.update(vectors=[]),
        "Retrieve": lambda parsed: parsed.update(retrievalResults=[]),
    }
)

ACCEPTS = Fault(
    accepts=(
        *("PutVectors", "QueryVectors", "GetIndex", "Retrieve", "RetrieveAndGenerate", "CreateDataSource"),
        *("IngestKnowledgeBaseDocuments", "StartIngestionJob", "InvokeModel", "AgenticRetrieveStream"),
        "PutVectorBucketDefaultIndexMode",
    )
)
"""The service refuses nothing."""


def _each_result(change: Callable[[Parsed], object], **more: Any) -> Fault:
    return response("Retrieve", lambda parsed: [change(each) for each in parsed["retrievalResults"]], **more)


def _each_vector(change: Callable[[Parsed], object]) -> Fault:
    return response("QueryVectors", lambda parsed: [change(each) for each in parsed["vectors"]])


def _statuses(status: str, fixture: Callable[[Site], Any]) -> Fault:
    """Documents have another status, also those that are ingested for the fixture."""

    def change(parsed: Parsed) -> None:
        for each in parsed["documentDetails"]:
            each["status"] = status

    return response("GetKnowledgeBaseDocuments", change, remakes=(fixture,))


def _text_indexed_first(fixture: Callable[[Site], Any]) -> Fault:
    """The first answer has a status that the service model does not know."""
    status = iter(["TEXT_INDEXED"])

    def change(parsed: Parsed) -> None:
        first = parsed["documentDetails"][0]
        first["status"] = next(status, first["status"])

    return response("GetKnowledgeBaseDocuments", change, remakes=(fixture,))


def _text(found: str, shown: str) -> Fault:
    def change(result: Parsed) -> None:
        result["content"]["text"] = result["content"]["text"].replace(found, shown)

    return _each_result(change)


def _late() -> Callable[[Parsed], object]:
    """Nothing is found by the first search."""
    number = itertools.count()

    def change(parsed: Parsed) -> None:
        if next(number) == 0:
            parsed["retrievalResults"] = []

    return change


def _first_answer(change: Callable[[Parsed], object]) -> Callable[[Parsed], object]:
    """Change the first answer alone."""
    numbers = itertools.count()
    return lambda parsed: None if next(numbers) else change(parsed)


def _job(status: str, **more: Any) -> Fault:
    """Jobs end with another status."""

    def change(parsed: Parsed) -> None:
        if parsed["ingestionJob"]["status"] in ("COMPLETE", "FAILED"):
            parsed["ingestionJob"]["status"] = status

    return response("GetIngestionJob", change, **more)


def _parsed_parameters(parsed: Parsed) -> None:
    connector = parsed["dataSource"]["dataSourceConfiguration"]["managedKnowledgeBaseConnectorConfiguration"]
    connector["connectorParameters"] = json.loads(connector["connectorParameters"])


def _base_status(status: str) -> Fault:
    return response("GetKnowledgeBase", lambda parsed: parsed["knowledgeBase"].update(status=status))


def _first(name: str) -> Callable[[Parsed], object]:
    """Give all vectors but the first another member."""
    return lambda parsed: [each.pop(name, None) for each in parsed["vectors"]]


def _scores(change: Callable[[Parsed], object]) -> Fault:
    return _each_vector(lambda found: change(found["scores"]))


def _metadata(change: Callable[[Parsed], object]) -> Fault:
    return _each_result(lambda found: change(found["metadata"]))


def _in_index(change: Callable[[Parsed], object]) -> Fault:
    return _each_vector(lambda found: change(found["metadata"]))


def _text_searches(change: Callable[[Parsed], object]) -> Fault:
    def each(parsed: Parsed) -> None:
        for search in parsed["index"]["metadataConfiguration"]["textSearchConfigurations"]:
            change(search)

    return response("GetIndex", each)


def _found_too(key: str) -> Fault:
    return response("QueryVectors", lambda parsed: parsed["vectors"].append({"key": key}))


def _shown_to_all() -> Fault:
    def change(params: Params) -> Params:
        return {**params, "userContext": {"userId": documents.READER}}

    return Fault(request={"Retrieve": change})


def _shown_too(key: str) -> Fault:
    place = {"location": {"type": "S3", "s3Location": {"uri": f"https://b.s3.us-east-1.amazonaws.com/{key}"}}}
    return response("Retrieve", lambda parsed: parsed["retrievalResults"].append(place))


def _embedding(*numbers: float) -> Fault:
    body = json.dumps({"embedding": numbers})
    return Fault(instead={"InvokeModel": lambda _: {"body": io.BytesIO(body.encode())}})


TWO_PAGES = Fault(response={"QueryVectors": lambda parsed: parsed.pop("nextToken", None)})


def _quotas(*names: str) -> Fault:
    def answer(_: Params) -> Parsed:
        quotas = [{"QuotaCode": f"L-{number}", "QuotaName": name, "Value": 1.0} for number, name in enumerate(names)]
        return {"Quotas": quotas}

    return Fault(
        instead={"ListServiceQuotas": answer, "ListAWSDefaultServiceQuotas": answer},
        forgets=(account.bedrock_quotas,),
    )


QUOTA_NAMES = (
    *(name for is_managed in (False, True) for _, _, name in quotas.knowledge_base_quotas([], is_managed=is_managed)),
    "On-demand model inference requests per minute for Amazon Titan Text Embeddings V2",
    "On-demand model inference tokens per minute for Amazon Titan Text Embeddings V2",
    "Concurrent executions",
)


def _availability(**changed: Any) -> Fault:
    answer = {
        "regionAvailability": "AVAILABLE",
        "authorizationStatus": "AUTHORIZED",
        "entitlementAvailability": "AVAILABLE",
        "agreementAvailability": {"status": "AVAILABLE"},
        **changed,
    }
    return Fault(instead={"GetFoundationModelAvailability": lambda _: answer})


def _recognized(*lines: str) -> Fault:
    blocks = [
        *({"BlockType": "LINE", "Text": line} for line in lines),
        *({"BlockType": "WORD", "Text": word} for line in lines for word in line.split()),
    ]
    return Fault(instead={"DetectDocumentText": lambda _: {"Blocks": blocks}})


def _some_throttled(answer: Parsed) -> Callable[[Params], Parsed]:
    numbers = itertools.count()
    return lambda _: answer if next(numbers) % 3 else {"Error": {"Code": "ThrottlingException", "Message": "slower"}}


FAULTS: Mapping[str, Fault] = {
    # S3 Vectors
    "vectors.default_mode": response(
        "GetVectorBucket", lambda parsed: parsed["vectorBucket"].update(defaultIndexMode="CLASSIC")
    ),
    "vectors.index_mode": response("GetIndex", lambda parsed: parsed["index"].pop("indexMode")),
    "vectors.missing_index": Fault(refuses={"GetIndex": "ValidationException"}),
    "vectors.put_is_consistent": NOTHING_FOUND,
    "vectors.distance": _each_vector(lambda found: found.update(distance=found["distance"] / 2)),
    "vectors.pages": TWO_PAGES,
    # Words
    "words.found": NOTHING_FOUND,
    "words.stems": NOTHING_FOUND,
    "words.no_stems": _found_too("pump"),
    "words.case": NOTHING_FOUND,
    "words.accents": NOTHING_FOUND,
    "words.any_word": NOTHING_FOUND,
    "words.scores_of_words": _scores(lambda scores: scores.update(fused=1.0)),
    "words.scores_of_both": _scores(lambda scores: scores.pop("fused", None)),
    "words.rank_constant": _scores(lambda scores: scores.update(fused=2 / 21)),
    "words.whole_index": Fault(
        request={
            "QueryVectors": lambda params: (
                {**params, "queryTexts": [{**params["queryTexts"][0], "text": "valve"}]} if "filter" in params else None
            )
        }
    ),
    "words.filter": IGNORED_FILTER,
    "words.consistent": NOTHING_FOUND,
    "words.pages": TWO_PAGES,
    "words.no_language": _text_searches(lambda search: search.setdefault("language", "standard")),
    "words.update": NOTHING_FOUND,
    # Ingestion
    "ingestion.creation": _base_status("FAILED"),
    "ingestion.creation_time": Fault(
        made={fixtures.knowledge_base: lambda base: replace(base, creation_seconds=500.0)}
    ),
    "ingestion.first_job": Fault(
        made={fixtures.knowledge_base: lambda base: replace(base, first_job={**base.first_job, "status": "FAILED"})}
    ),
    "ingestion.after_first_job": _statuses("FAILED", fixtures.ingested),
    "ingestion.findable": response("Retrieve", _late(), takes=6.0),
    "ingestion.unknown": _statuses("FAILED", fixtures.ingested),
    "ingestion.missing_object": _statuses("INDEXED", fixtures.ingested),
    "ingestion.deletion": _each_result(
        lambda found: found.update(location={"type": "CUSTOM", "customDocumentLocation": {"id": "deleted"}}), takes=6.0
    ),
    "ingestion.during_job": Fault(codes={"IngestKnowledgeBaseDocuments": "ConflictException"}),
    "ingestion.job_statistics": response(
        "GetIngestionJob", lambda parsed: parsed["ingestionJob"]["statistics"].update(numberOfDocumentsScanned=1)
    ),
    "ingestion.ascii_text": _text(documents.ASCII_WORD, "?"),
    "ingestion.utf8_text": _text(documents.UTF8_WORD, "F\xc3\xb6rderbr\xc3\xbccke"),
    "ingestion.utf8_markdown": _text(documents.CHINESE_TEXT, "?" * 9),
    "ingestion.html": _text("The tide gauge", "<p>The tide gauge"),
    "ingestion.csv": _text("eleven metres", ""),
    "ingestion.pages": _metadata(
        lambda metadata: metadata.update(
            {key: value - 1 for key, value in metadata.items() if key == "x-amz-bedrock-kb-document-page-number"}
        )
    ),
    "ingestion.large_metadata": _statuses("INDEXED", fixtures.ingested),
    "ingestion.many_attributes": _statuses("INDEXED", fixtures.ingested),
    "ingestion.unsupported_file": _statuses("IGNORED", fixtures.ingested),
    "ingestion.nova": _base_status("FAILED"),
    "ingestion.cohere": _base_status("FAILED"),
    # Retrieve
    "retrieval.members": _each_result(lambda found: found.update(documentId="x")),
    "retrieval.location": _each_result(lambda found: found["location"].update(type="WEB")),
    "retrieval.metadata_keys": _metadata(lambda metadata: metadata.update({"x-amz-bedrock-kb-index-id": "i"})),
    "retrieval.metadata_values": _metadata(lambda metadata: metadata.update(legs="4")),
    "retrieval.default_results": response(
        "Retrieve", lambda parsed: parsed.update(retrievalResults=parsed["retrievalResults"][:3])
    ),
    "retrieval.pages": response("Retrieve", lambda parsed: parsed.pop("nextToken", None)),
    "retrieval.comparable_scores": Fault(
        request={
            "Retrieve": lambda params: (
                {**params, "retrievalQuery": {"text": "whale"}}
                if "filter" in params["retrievalConfiguration"]["vectorSearchConfiguration"]
                else None
            )
        }
    ),
    "retrieval.unknown_base": Fault(refuses={"Retrieve": "ValidationException"}),
    "retrieval.words_in_index": NOTHING_FOUND,
    "retrieval.index_keys": _in_index(lambda metadata: metadata.pop("x-amz-bedrock-kb-source-uri")),
    "retrieval.chunk_id": _each_vector(lambda found: found.update(key="other")),
    "retrieval.index_text": _in_index(lambda metadata: metadata.update(AMAZON_BEDROCK_TEXT="title: text")),
    "retrieval.filter_by_source": NOTHING_FOUND,
    "retrieval.score": _each_result(lambda found: found.update(score=(1 + found["score"]) / 2)),
    # Managed knowledge bases
    "managed.creation": response(
        "GetKnowledgeBase", lambda parsed: parsed["knowledgeBase"].update(storageConfiguration={})
    ),
    "managed.direct_ingestion": _statuses("PARTIALLY_INDEXED", managed_fixtures.ingested),
    "managed.default_results": response(
        "Retrieve", lambda parsed: parsed.update(retrievalResults=parsed["retrievalResults"][:3])
    ),
    "managed.members": _each_result(lambda found: found.pop("documentId")),
    "managed.place_of_custom": _metadata(lambda metadata: metadata.pop("_source_uri")),
    "managed.place_of_s3": _each_result(lambda found: found["metadata"].update(_source_uri="s3://other")),
    "managed.metadata_keys": _metadata(lambda metadata: metadata.pop("_language_code")),
    "managed.old_metadata_keys": _metadata(lambda metadata: metadata.update({"x-amz-bedrock-kb-chunk-id": "1"})),
    "managed.page": _metadata(lambda metadata: metadata.pop("_document_page_number", None)),
    "managed.utf8_text": _text(documents.UTF8_WORD, "F\xc3\xb6rderbr\xc3\xbccke"),
    "managed.scores": _each_result(lambda found: found.update(score=found["score"] * 20)),
    "managed.no_reranking": Fault(refuses={"Retrieve": "ValidationException"}),
    "managed.access_without_user": _shown_too(documents.READABLE_KEY),
    "managed.access_of_user": _shown_too(documents.DENIED_KEY),
    "managed.access_of_others": _shown_to_all(),
    "managed.access_check": response("CheckIngestedDocumentAcl", lambda parsed: parsed.update(hasAccess=True)),
    "managed.content": response("GetDocumentContent", lambda parsed: parsed.update(documentContentLength=1)),
    "managed.own_embedding": ACCEPTS,
    "managed.chunk_id": _metadata(lambda metadata: metadata.update(_chunk_id="1")),
    "managed.user_case": _shown_to_all(),
    "managed.next_token": response("Retrieve", lambda parsed: parsed.update(nextToken="more")),
    "managed.pages": response("Retrieve", lambda parsed: parsed.pop("nextToken", None)),
    "managed.reranker_drops": response("Retrieve", _first_answer(lambda parsed: parsed["retrievalResults"].pop())),
    "managed.same_text": response(
        "Retrieve",
        _first_answer(lambda parsed: [each["content"].update(text="x") for each in parsed["retrievalResults"]]),
    ),
    "managed.reranking_without_type": Fault(
        request={
            "Retrieve": lambda params: (
                None
                if "rerankingModelType" in params["retrievalConfiguration"]["managedSearchConfiguration"]
                else {**params, "retrievalQuery": {"text": " "}}
            )
        }
    ),
    "managed.acl_prefixes": _shown_too(f"{documents.SHARED_PREFIX}denied.md"),
    "managed.acl_unreadable": _job(status="COMPLETE"),
    "managed.acl_lost": _shown_too(documents.LOST_KEY),
    "managed.inline_lists": _shown_too(f"{documents.PEOPLE_PREFIX}unlisted"),
    "managed.access_check_open": response(
        "GetIngestedDocumentAcl", lambda parsed: parsed["documentAcl"].update(allowList={})
    ),
    "managed.acl_types": response(
        "GetIngestedDocumentAcl",
        lambda parsed: parsed["documentAcl"]["allowList"]["conditions"][0]["users"][0].update(type="KNOWLEDGE_BASE"),
    ),
    "managed.content_changed": Fault(
        request={"PutObject": lambda params: {**params, "Body": documents.OBJECTS[documents.ASCII_KEY]}}
    ),
    "managed.content_extracted": Fault(
        request={"GetDocumentContent": lambda params: {**params, "outputFormat": "RAW"}}
    ),
    "managed.content_denied": Fault(codes={"GetDocumentContent": "ResourceNotFoundException"}),
    "managed.agentic": response("AgenticRetrieveStream", lambda parsed: parsed.update(stream=[{"responseEvent": {}}])),
    "managed.deletion_protection": _job(status="FAILED", remakes=(managed_fixtures.changed,)),
    "managed.second_job": Fault(
        codes={"StartIngestionJob": "ValidationException"}, remakes=(managed_fixtures.changed,)
    ),
    "managed.connector_parameters": response("GetDataSource", _parsed_parameters),
    "managed.invalid_connector": response(
        "GetDataSource", lambda parsed: parsed["dataSource"].update(status="AVAILABLE")
    ),
    "managed.list_statuses": response(
        "ListKnowledgeBaseDocuments", lambda parsed: parsed["documentDetails"][0].update(status="TEXT_INDEXED")
    ),
    "managed.patterns": _shown_too(f"{documents.SELECTED_PREFIX}inner.md"),
    "managed.metadata_prefix": _metadata(lambda metadata: metadata.pop("place", None)),
    "managed.skipped": _job(status="FAILED"),
    # The rest of ingestion
    "ingestion.statuses": _text_indexed_first(fixtures.ingested),
    "managed.statuses": _text_indexed_first(managed_fixtures.ingested),
    "ingestion.second_job": Fault(codes={"StartIngestionJob": "ValidationException"}),
    "ingestion.before_first_job": Fault(),
    # The account and its models
    "account.quota_names": _quotas("(Knowledge Bases) Retrievals a second"),
    "account.model_quota_names": _quotas("On-demand model inference requests per minute for Titan V2 of Amazon"),
    "account.concurrency_name": _quotas("Executions at once"),
    "account.amazon_model": _availability(authorizationStatus="NOT_AUTHORIZED"),
    "account.agreement": _availability(agreementAvailability={"status": "ERROR"}),
    "account.form": Fault(instead={"GetUseCaseForModelAccess": error("ValidationException")}),
    "account.embedding_rate": _quotas("Requests of all embeddings"),
    "models.textract": _recognized("The crane", "lifts forty tonnes."),
    "models.embedding": _embedding(0.6, 0.8),
    "models.converse": response("Converse", lambda parsed: parsed["usage"].pop("inputTokens")),
    "models.converse_stream": response(
        "ConverseStream", lambda parsed: parsed.update(stream=[{"messageStart": {}}, {"messageStop": {}}])
    ),
    "models.unknown_model": Fault(instead={"Converse": error("ModelErrorException")}),
    # Rates
    "limits.retrieve": Fault(),
    "limits.retrieve_managed": Fault(),
    "limits.get_documents": Fault(),
    "limits.ingest_documents": Fault(refuses={"IngestKnowledgeBaseDocuments": "ConflictException"}),
    "words.building": Fault(instead={"QueryVectors": error("ConflictException")}),
    "words.update_building": Fault(instead={"UpdateMetadataConfiguration": error("ValidationException")}),
}
"""What the checks must notice; :func:`fault_of` knows those of tables of filters and of refusals."""


def fault_of(check: Check) -> Fault | None:
    """Return the fault that a check must notice; None if nobody has written one."""
    if check.name in FAULTS:
        return FAULTS[check.name]
    if check.topic in ("vector-filters", "filters", "managed-filters"):
        return IGNORED_FILTER if check.expected != "acnsw" else NOTHING_FOUND
    return (
        ACCEPTS if INVALID in (check.expected, *(check.expected if isinstance(check.expected, list) else ())) else None
    )


def on_aws(check: Check) -> Fault:
    """Return what AWS is believed to answer to a check that the local stack cannot answer."""
    return ON_AWS[check.name] if check.aws_only else Fault()


ON_AWS: Mapping[str, Fault] = {
    "words.building": Fault(instead={"QueryVectors": error("ValidationException")}),
    "words.update_building": Fault(instead={"UpdateMetadataConfiguration": error("ConflictException")}),
    "ingestion.before_first_job": Fault(instead={"IngestKnowledgeBaseDocuments": error("ValidationException")}),
    "account.quota_names": _quotas(*QUOTA_NAMES),
    "account.model_quota_names": _quotas(*QUOTA_NAMES),
    "account.concurrency_name": _quotas(*QUOTA_NAMES),
    "account.amazon_model": _availability(),
    "account.agreement": _availability(),
    "account.form": Fault(instead={"GetUseCaseForModelAccess": error("ResourceNotFoundException")}),
    "account.embedding_rate": _quotas(*QUOTA_NAMES),
    "models.textract": _recognized("The crane lifts forty tonnes."),
    "models.unknown_model": Fault(instead={"Converse": error("ResourceNotFoundException")}),
    "limits.retrieve": Fault(instead={"Retrieve": _some_throttled({"retrievalResults": []})}),
    "limits.retrieve_managed": Fault(instead={"Retrieve": _some_throttled({"retrievalResults": []})}),
    "limits.ingest_documents": Fault(
        instead={"IngestKnowledgeBaseDocuments": _some_throttled({"documentDetails": []})}
    ),
    "limits.get_documents": Fault(instead={"GetKnowledgeBaseDocuments": _some_throttled({"documentDetails": []})}),
}
"""The answers that AWS is believed to give; nothing else is known of them here."""
