"""What checks of the services share: buckets, indexes and knowledge bases of the run, made when a check needs them."""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from botocore.exceptions import ClientError

from ragstack_common.ingestion.requests import (
    CUSTOM,
    S3,
    SourceType,
    document_identifier,
    s3_document,
    text_document,
    to_request,
)
from ragstack_common.settings.names import METADATA_KEY, TEXT_KEY
from ragstack_local.certify import documents
from ragstack_local.certify.removal import BUCKET, KNOWLEDGE_BASE, ROLE, VECTOR_BUCKET, VECTOR_INDEX
from ragstack_local.certify.site import FixtureError, Site

T = TypeVar("T")

EMBEDDING: Final = "amazon.titan-embed-text-v2:0"
DIMENSION: Final = 1024
LOCAL_ROLE: Final = "arn:aws:iam::000000000000:role/local"

ROLE_SECONDS: Final = 120.0
"""How long IAM may take until Bedrock can assume a new role."""

SEARCHABLE_SECONDS: Final = 300.0
"""How long documents may be INDEXED before a search finds them; about a second is usual."""

UNDER_WAY: Final = ("STARTING", "PENDING", "IN_PROGRESS", "DELETING", "DELETE_IN_PROGRESS")
"""Statuses of a document that is worked on; all others are final, also unknown ones.

Source: bedrock-agent, DocumentStatus.
"""

DOCUMENTS_PER_CALL: Final = 10

SECONDS_BETWEEN_JOBS: Final = 10.0
"""Source: Bedrock's quotas, StartIngestionJob requests a second: 0.1."""

LONG: Final = "long"
"""The document of the CUSTOM data source with more than a hundred chunks."""


def vector_bucket(site: Site) -> str:
    """The vector bucket."""
    name = site.name()
    with site.creating(VECTOR_BUCKET, name):
        site.client("s3vectors").create_vector_bucket(vectorBucketName=name)
    return name


def create_index(site: Site, name: str, dimension: int, **more: Any) -> dict[str, str]:
    """Create an index in the vector bucket of the run, and return its names as requests take them."""
    bucket = site.shared(vector_bucket)
    with site.creating(VECTOR_INDEX, name, bucket):
        site.client("s3vectors").create_index(
            vectorBucketName=bucket,
            indexName=name,
            dataType="float32",
            dimension=dimension,
            distanceMetric="cosine",
            **more,
        )
    return {"vectorBucketName": bucket, "indexName": name}


def wait_for_words(site: Site, index: Mapping[str, str]) -> list[str]:
    """Wait until the text searches of an index are ACTIVE; return the statuses that were seen, each once."""
    seen: dict[str, None] = {}

    def is_active() -> bool:
        found = site.client("s3vectors").get_index(**index)["index"]["metadataConfiguration"]
        statuses = [each.get("status", "") for each in found.get("textSearchConfigurations", [])]
        seen.update(dict.fromkeys(statuses))
        return bool(statuses) and all(status == "ACTIVE" for status in statuses)

    site.eventually(is_active, "the text search to be ACTIVE")
    return list(seen)


def bucket_name(site: Site, kind: SourceType = S3) -> str:
    """Return the bucket of the documents of the knowledge base on S3 Vectors, or of the managed one (CUSTOM).

    They have different ones, because the first job of a data source finds an empty bucket.
    """
    return site.name("managed" if kind == CUSTOM else "")


def create_bucket(site: Site, name: str) -> None:
    """Create a bucket."""
    elsewhere = site.is_aws and site.region != "us-east-1"  # the API refuses us-east-1 as a constraint
    place = {"CreateBucketConfiguration": {"LocationConstraint": site.region}} if elsewhere else {}
    with site.creating(BUCKET, name):
        site.client("s3").create_bucket(Bucket=name, **place)


def upload(site: Site, name: str) -> None:
    """Put the documents into a bucket."""
    for key, content in documents.OBJECTS.items():
        site.client("s3").put_object(Bucket=name, Key=key, Body=content)


def objects(site: Site) -> None:
    """The documents in the bucket, after the first job."""
    site.shared(knowledge_base)
    upload(site, bucket_name(site))


def role(site: Site) -> str:
    """The role of the knowledge bases."""
    if not site.is_aws:
        return LOCAL_ROLE
    name, iam = site.name(), site.client("iam")
    account, region = site.place.account, site.region
    trust = {
        "Effect": "Allow",
        "Principal": {"Service": "bedrock.amazonaws.com"},
        "Action": "sts:AssumeRole",
        "Condition": {
            "StringEquals": {"aws:SourceAccount": account},
            "ArnLike": {"aws:SourceArn": f"arn:{site.partition}:bedrock:{region}:{account}:knowledge-base/*"},
        },
    }
    own = f"arn:{site.partition}:s3:::{site.name()}*"
    vectors = f"arn:{site.partition}:s3vectors:{region}:{account}:bucket/{site.name()}/index/*"
    statements = [
        {"Action": ["s3:ListBucket"], "Resource": own},
        {"Action": ["s3:GetObject"], "Resource": f"{own}/*"},
        {
            "Action": ["bedrock:InvokeModel"],
            "Resource": f"arn:{site.partition}:bedrock:{region}::foundation-model/*",
        },
        {"Action": ["bedrock:Rerank"], "Resource": "*"},
        {
            # Source: user guide of Amazon Bedrock, permissions to access S3 Vectors.
            "Action": [
                f"s3vectors:{each}"
                for each in ("PutVectors", "GetVectors", "DeleteVectors", "QueryVectors", "GetIndex")
            ],
            "Resource": vectors,
        },
    ]
    with site.creating(ROLE, name):
        arn: str = iam.create_role(RoleName=name, AssumeRolePolicyDocument=_policy(trust))["Role"]["Arn"]
    iam.put_role_policy(
        RoleName=name, PolicyName=name, PolicyDocument=_policy(*({"Effect": "Allow", **each} for each in statements))
    )
    return arn


def _policy(*statements: Mapping[str, Any]) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": list(statements)})


@dataclass(frozen=True)
class DataSource:
    """A data source of a knowledge base of the run."""

    site: Site
    knowledge_base_id: str
    id: str

    @property
    def ids(self) -> dict[str, str]:
        """As requests take them."""
        return {"knowledgeBaseId": self.knowledge_base_id, "dataSourceId": self.id}

    def ingest(self, requests: Sequence[Mapping[str, Any]]) -> None:
        """Ingest documents directly."""
        agent = self.site.client("bedrock-agent")
        for start in range(0, len(requests), DOCUMENTS_PER_CALL):
            agent.ingest_knowledge_base_documents(**self.ids, documents=requests[start : start + DOCUMENTS_PER_CALL])

    def statuses(self, identifiers: Sequence[Mapping[str, Any]]) -> list[str]:
        """Return the statuses of documents."""
        agent = self.site.client("bedrock-agent")
        found = []
        for start in range(0, len(identifiers), DOCUMENTS_PER_CALL):
            some = identifiers[start : start + DOCUMENTS_PER_CALL]
            details = agent.get_knowledge_base_documents(**self.ids, documentIdentifiers=some)["documentDetails"]
            found += [detail["status"] for detail in details]
        return found

    def settled(self, identifiers: Sequence[Mapping[str, Any]]) -> list[str]:
        """Wait until the statuses of documents no longer change, and return them."""
        seen = self.site.statuses[self.knowledge_base_id]

        def look() -> list[str] | None:
            found = self.statuses(identifiers)
            seen.update(found)
            return None if set(found) & set(UNDER_WAY) else found

        return self.site.eventually(look, "the documents to be INDEXED") or []

    def start_job(self) -> str:
        """Start an ingestion job, as soon as the account may: the stacks of the run start one too."""
        agent = self.site.client("bedrock-agent", attempts=1)
        while True:
            try:
                return str(agent.start_ingestion_job(**self.ids)["ingestionJob"]["ingestionJobId"])
            except ClientError as error:
                if error.response["Error"]["Code"] != "ThrottlingException":
                    raise
            self.site.pause(SECONDS_BETWEEN_JOBS)

    def ended_job(self, job: str) -> Mapping[str, Any]:
        """Wait until a job has ended, and return it."""
        agent = self.site.client("bedrock-agent")

        def look() -> Mapping[str, Any] | None:
            found: Mapping[str, Any] = agent.get_ingestion_job(**self.ids, ingestionJobId=job)["ingestionJob"]
            return found if found["status"] in ("COMPLETE", "FAILED", "STOPPED") else None

        return self.site.eventually(look, "the ingestion job to end") or {}


@dataclass(frozen=True)
class KnowledgeBase:
    """A knowledge base of the run, on an index of S3 Vectors.

    Attributes:
        index: The names of the index.
        files: The data source of the whole bucket, whose first job found nothing.
        jobs: A data source of some objects.
        texts: The data source of type CUSTOM, with chunks of twenty tokens.
        creation_seconds: Until it was ACTIVE.
        first_job: The first job of the source of files.
    """

    id: str
    index: Mapping[str, str]
    files: DataSource
    jobs: DataSource
    texts: DataSource
    creation_seconds: float
    first_job: Mapping[str, Any]


def create_knowledge_base(site: Site, part: str, **request: Any) -> tuple[str, float]:
    """Create a knowledge base, and wait until it is ACTIVE; return its id and the seconds that it took."""
    agent, name, arn = site.client("bedrock-agent"), site.name(part), site.shared(role)
    start = time.monotonic()
    with site.creating(KNOWLEDGE_BASE, name):
        while True:
            try:
                created = agent.create_knowledge_base(name=name, roleArn=arn, **request)
            except ClientError as error:
                # IAM is eventually consistent: Bedrock cannot assume the new role yet, or lacks its policy.
                if "role" not in str(error) and "permission" not in str(error):
                    raise
                if not site.is_aws or time.monotonic() - start > ROLE_SECONDS:
                    raise
                site.pause(5.0)
            else:
                break
    id_ = str(created["knowledgeBase"]["knowledgeBaseId"])
    submitted = time.monotonic()

    def is_active() -> bool:
        status = agent.get_knowledge_base(knowledgeBaseId=id_)["knowledgeBase"]["status"]
        if status == "FAILED":
            raise RuntimeError("the knowledge base is FAILED")
        return bool(status == "ACTIVE")

    site.eventually(is_active, "the knowledge base to be ACTIVE")
    return id_, time.monotonic() - submitted


def made(site: Site, make: Callable[[Site], T], *needed: Callable[[Site], Any]) -> T:
    """Return a shared fixture; an error of AWS that prevented it is an observation.

    Raises:
        FixtureError: What is *needed* for it could not be made.
    """
    for each in needed:
        site.shared(each)
    try:
        return site.shared(make)
    except FixtureError as error:
        if isinstance(error.__cause__, ClientError):
            raise error.__cause__ from None
        raise


def created(site: Site, make: Callable[[Site], Any]) -> Mapping[str, Any]:
    """Return the description of a shared knowledge base; an error of AWS that prevented it is an observation."""
    id_ = made(site, make).id
    found: Mapping[str, Any] = site.client("bedrock-agent").get_knowledge_base(knowledgeBaseId=id_)["knowledgeBase"]
    return found


def create_source(
    site: Site, knowledge_base: str, name: str, configuration: Mapping[str, Any], **more: Any
) -> DataSource:
    """Create a data source, and wait until it is AVAILABLE."""
    agent = site.client("bedrock-agent")
    created = agent.create_data_source(
        knowledgeBaseId=knowledge_base,
        name=name,
        dataSourceConfiguration=configuration,
        **more,
    )
    source = DataSource(site, knowledge_base, created["dataSource"]["dataSourceId"])

    def is_available() -> bool:
        status = agent.get_data_source(**source.ids)["dataSource"]["status"]
        if status == "FAILED":
            raise RuntimeError("the data source is FAILED")
        return bool(status == "AVAILABLE")

    site.eventually(is_available, "the data source to be AVAILABLE")
    return source


def on_index(site: Site, index: Mapping[str, str], model: str = EMBEDDING, **embedding: Any) -> dict[str, Any]:
    """Return the configuration of a knowledge base on an index."""
    vector = {"embeddingModelArn": f"arn:{site.partition}:bedrock:{site.region}::foundation-model/{model}", **embedding}
    arn = site.client("s3vectors").get_index(**index)["index"]["indexArn"]
    return {
        "knowledgeBaseConfiguration": {"type": "VECTOR", "vectorKnowledgeBaseConfiguration": vector},
        "storageConfiguration": {"type": "S3_VECTORS", "s3VectorsConfiguration": {"indexArn": arn}},
    }


def index_for_chunks(site: Site, name: str, *, words: bool = False) -> dict[str, str]:
    """Create an index as the stacks do, for a knowledge base."""
    searches = {"textSearchConfigurations": [{"metadataKey": TEXT_KEY, "language": "en"}]} if words else {}
    return create_index(
        site,
        name,
        DIMENSION,
        metadataConfiguration={"nonFilterableMetadataKeys": [TEXT_KEY, METADATA_KEY], **searches},
    )


def knowledge_base(site: Site) -> KnowledgeBase:
    """The knowledge base on S3 Vectors."""
    name = bucket_name(site)
    create_bucket(site, name)
    index = index_for_chunks(site, "chunks", words=True)
    id_, seconds = create_knowledge_base(site, "vectors", **on_index(site, index))
    files = create_source(site, id_, "files", s3_configuration(site, name), dataDeletionPolicy="RETAIN")
    some = s3_configuration(site, name, inclusionPrefixes=[documents.JOB_PREFIX])
    jobs = create_source(site, id_, "jobs", some, dataDeletionPolicy="RETAIN")
    small = {
        "chunkingStrategy": "FIXED_SIZE",
        "fixedSizeChunkingConfiguration": {"maxTokens": 20, "overlapPercentage": 1},
    }
    texts = create_source(
        site,
        id_,
        "texts",
        {"type": "CUSTOM"},
        dataDeletionPolicy="RETAIN",
        vectorIngestionConfiguration={"chunkingConfiguration": small},
    )
    first_job = files.ended_job(files.start_job())  # before the objects are uploaded
    return KnowledgeBase(id_, index, files, jobs, texts, seconds, first_job)


def s3_configuration(site: Site, name: str, **more: Any) -> dict[str, Any]:
    """Return the configuration of a data source of a bucket.

    Its knowledge base is on an index that is deleted as a whole: with dataDeletionPolicy RETAIN, the data source is
    deleted without its vectors.
    """
    return {"type": "S3", "s3Configuration": {"bucketArn": f"arn:{site.partition}:s3:::{name}", **more}}


def document_uri(site: Site, key: str, kind: SourceType = S3) -> str:
    """Return the URI of a document of a bucket."""
    return f"s3://{bucket_name(site, kind)}/{key}"


def request_for(site: Site, key: str, kind: SourceType = S3) -> dict[str, Any]:
    """Return the product's request that ingests a document of the bucket, with its sidecar if it has one."""
    sidecar = documents.sidecar(key)
    sidecar_uri = document_uri(site, sidecar, kind) if sidecar else None
    given = s3_document(document_uri(site, key, kind), "", sidecar_uri)
    return to_request(given, "", kind)


def identifiers(site: Site, keys: Sequence[str], kind: SourceType = S3) -> list[dict[str, Any]]:
    """Return the identifiers of documents of the bucket."""
    return [document_identifier(document_uri(site, key, kind), kind) for key in keys]


def ingested(site: Site) -> Mapping[str, str]:
    """The documents in the knowledge base on S3 Vectors, as their statuses by key."""
    site.shared(objects)
    base = site.shared(knowledge_base)
    base.texts.ingest([text_document(LONG, documents.LONG_TEXT)])
    base.files.ingest([request_for(site, key) for key in documents.KEYS])
    statuses = base.files.settled(identifiers(site, documents.KEYS))
    base.texts.settled([document_identifier(LONG, CUSTOM)])
    site.eventually(
        lambda: _found_animals(site, base.id) == documents.EVERY_ANIMAL, "the documents to be found", SEARCHABLE_SECONDS
    )
    return dict(zip(documents.KEYS, statuses, strict=True))


def unknown_statuses(site: Site, knowledge_base_id: str) -> list[str]:
    """Return the statuses of documents of a knowledge base that the service model does not know."""
    shape = site.client("bedrock-agent").meta.service_model.shape_for("DocumentStatus")
    return sorted(site.statuses[knowledge_base_id] - set(shape.enum))


def _found_animals(site: Site, knowledge_base_id: str) -> str:
    answer = site.client("bedrock-agent-runtime").retrieve(
        knowledgeBaseId=knowledge_base_id,
        retrievalQuery={"text": documents.ANIMAL_QUERY},
        retrievalConfiguration={"vectorSearchConfiguration": {"numberOfResults": 100}},
    )
    return documents.letters(answer["retrievalResults"])
