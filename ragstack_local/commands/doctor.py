"""``ragstack doctor``: check that a stack works, with one document that is removed afterwards."""

import secrets
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from botocore.exceptions import BotoCoreError, ClientError

from ragstack_common.core.errors import RagStackError
from ragstack_local.api.calls import each, run
from ragstack_local.connection_options import AsJson, ConnectionOptions, with_options
from ragstack_local.errors import FAILED
from ragstack_local.show import display
from ragstack_local.show.checks import CheckError, Checks, print_check

if TYPE_CHECKING:
    from collections.abc import Callable

    from ragstack_common.services.search_models import RetrieveResponse
    from ragstack_local.api.http_operations import HttpOperations
    from ragstack_local.connection.connection import Connection
    from ragstack_local.files.documents import ApiDocuments

ATTRIBUTE: Final = "ragstack-doctor"
"""The probe's attribute, by which a search finds it among any number of documents."""

FINDABLE_SECONDS: Final = 60.0
"""How long a document may be INDEXED before a search finds it; about a second is usual."""

CALIBRATE: Final = (
    "Relevance is unknown for this embedding: write ten questions with their files, then `ragstack eval relevance"
    " questions.csv --setup engine=aws.json --calibrate settings.json` (docs/OPERATIONS.md#calibrate-relevance)"
)


@with_options
def doctor(
    stack: ConnectionOptions,
    timeout: Annotated[float, typer.Option(help="Seconds that the probe may take to be indexed.", min=1)] = 300.0,
    accept_agreements: Annotated[
        bool,
        typer.Option(
            "--accept-agreements",
            help="Accept, for this AWS account, the terms of the deployment's models that need an AWS Marketplace"
            " agreement.",
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Check that a stack works: upload a small document, find it, ask about it, and delete it.

    It also checks permissions, the knowledge base, alarms and dead letters, unless only an API is named, and on AWS the
    account's quotas and its access to models. A check ends as ok, warning, failed or skipped; the exit code is 3 if one
    failed.

    Example:  ragstack doctor

    After a deployment:  ragstack doctor --aws
    """
    from ragstack_local.account import checks as account  # noqa: PLC0415 - help does without

    checks = Checks(show=(lambda _check: None) if as_json else print_check)
    connection = None if stack.is_api else stack.connect()
    api = stack.api(connection)
    if connection is None:
        checks.skip("only an API is named", *account.NAMES, "permissions", "knowledge base", "alarms", "dead letters")
    else:
        if connection.is_local:
            checks.skip("the stack is local", *account.NAMES)
        else:
            account.check_account(checks, connection, stack.stack_prefix, accepts=accept_agreements)
        _check_stack(checks, connection, stack.stack_prefix)
    advice = "`ragstack logs query` says why; with auth=iam, the caller needs execute-api:Invoke"
    if checks.run("api", lambda: _health(api), advice):
        checks.run("word search", lambda: _word_search(api), "docs/SEARCH.md#words")
        _check_documents(checks, api, connection, timeout)
    else:
        checks.skip("the API does not answer", "word search", "upload", "search", "answer", "relevance", "clean-up")
    if as_json:
        shown = [asdict(check) for check in checks.done]
        display.print_json({"healthy": checks.are_healthy, "api_url": api.url, "checks": shown})
    if not checks.are_healthy:
        raise typer.Exit(FAILED)


def _check_stack(checks: Checks, connection: "Connection", prefix: str) -> None:
    checks.run(
        "permissions",
        lambda: _permissions(connection),
        "Commands with --aws need these actions (docs/OPERATIONS.md#permissions); searches and questions need only"
        " execute-api:Invoke",
    )
    checks.run(
        "knowledge base",
        lambda: _knowledge_base(connection),
        "Deploy again in a Region that has Amazon Bedrock Knowledge Bases and S3 Vectors, with access to the embedding"
        " model",
    )
    checks.run("text recognition", lambda: display.recognition_line(connection.recognition), "")
    checks.run("alarms", lambda: _alarms(connection, prefix), "The description of each alarm says what to do")
    checks.run("dead letters", lambda: _dead_letters(connection), "`ragstack failures` lists what failed, and why")


def _check_documents(checks: Checks, api: "HttpOperations", connection: "Connection | None", timeout: float) -> None:
    """Upload a probe, search for it, ask about it and delete it."""
    from ragstack_local.files.documents import ApiDocuments  # noqa: PLC0415 - help does without

    token = secrets.token_hex(6)
    documents = ApiDocuments(api, {ATTRIBUTE: token})
    chosen = {"metadata_filter": {ATTRIBUTE: {"$eq": token}}, "filter_mode": "strict"}
    key = f"ragstack-doctor/{token}.md"
    try:
        if not checks.run(
            "upload",
            lambda: _upload(documents, key, token, timeout),
            "`ragstack failures`, `ragstack logs ingestion` and `ragstack logs ingestion_status` say why",
        ):
            checks.skip("the probe is not indexed", "search", "answer", "relevance")
        elif not checks.run("search", lambda: _search(api, chosen, token), "`ragstack logs query` says why"):
            checks.skip("the probe is not found", "answer", "relevance")
        else:
            checks.run(
                "answer",
                lambda: _answer(api, chosen, token),
                "`ragstack logs answers` says why; with ANSWER_MODEL, this Region may lack access to the model",
            )
            checks.run("relevance", lambda: _relevance(api, chosen, token), CALIBRATE)
    finally:
        checks.run(
            "clean-up", lambda: _delete(documents, connection, key, timeout), f"Delete it: `ragstack delete {key}`"
        )


def _permissions(connection: "Connection") -> str:
    from ragstack_common.registry.table import document_id, document_key  # noqa: PLC0415 - help does without
    from ragstack_common.services.status import read_depth  # noqa: PLC0415

    calls: dict[str, Callable[[], Any]] = {
        "s3:ListBucket": lambda: connection.client("s3").list_objects_v2(Bucket=connection.bucket, MaxKeys=1),
        "sqs:GetQueueAttributes": lambda: read_depth(connection.client("sqs"), "events", connection.queue_url),
        "dynamodb:GetItem": lambda: connection.client("dynamodb").get_item(
            TableName=connection.registry_table, Key=document_key(document_id("s3://probe"))
        ),
        "bedrock:GetKnowledgeBase": lambda: _status_of_knowledge_base(connection),
    }
    missing = []
    for action, call in calls.items():
        try:
            call()
        except (ClientError, BotoCoreError) as error:
            missing.append(f"{action} ({' '.join(str(error).split()):.200})")
    if missing:
        raise CheckError(f"Refused: {'; '.join(missing)}", "warning")
    return f"May call {', '.join(calls)}"


def _status_of_knowledge_base(connection: "Connection") -> str:
    agent = connection.client("bedrock-agent")
    return str(agent.get_knowledge_base(knowledgeBaseId=connection.knowledge_base_id)["knowledgeBase"]["status"])


def _knowledge_base(connection: "Connection") -> str:
    agent = connection.client("bedrock-agent")
    ids = {"knowledgeBaseId": connection.knowledge_base_id, "dataSourceId": connection.data_source_id}
    status = _status_of_knowledge_base(connection)
    source = agent.get_data_source(**ids)["dataSource"]["status"]
    found = f"{ids['knowledgeBaseId']} is {status}, its data source {source}, in {agent.meta.region_name}"
    if (status, source) != ("ACTIVE", "AVAILABLE"):
        raise CheckError(found)
    embedding = display.embedding_line(connection.embedding())
    return f"{found}, embedding {embedding}" if embedding else found


def _alarms(connection: "Connection", prefix: str) -> str:
    from ragstack_common.services.status import read_alarms  # noqa: PLC0415 - help does without

    alarms = read_alarms(connection.client("cloudwatch"), prefix)
    if not alarms:
        raise CheckError(f"The stacks {prefix}* have no alarm")
    ringing = [alarm["AlarmName"] for alarm in alarms if alarm["StateValue"] == "ALARM"]
    if ringing:
        raise CheckError(f"Firing: {', '.join(ringing)}", "warning")
    silent = [alarm for alarm in alarms if not alarm.get("AlarmActions")]
    if silent and not connection.is_local:
        raise CheckError(
            f"{len(silent)} of {len(alarms)} alarms notify nobody: deploy with --context alarm_email=ADDRESS", "warning"
        )
    return f"{display.counted(len(alarms), 'alarm')}, none of them firing"


def _dead_letters(connection: "Connection") -> str:
    from ragstack_common.services.status import read_depth  # noqa: PLC0415 - help does without

    if number := read_depth(connection.client("sqs"), "dead letters", connection.dead_letter_queue_url).waiting:
        raise CheckError(f"{number:,} messages could not be processed", "warning")
    return "None"


def _health(api: "HttpOperations") -> str:
    run(api.health())
    return api.url


def _word_search(api: "HttpOperations") -> str:
    from ragstack_common.services.status import StatusReport  # noqa: PLC0415 - help does without

    try:
        found = run(api.request("GET", "/api/status", StatusReport)).word_search
    except RagStackError as error:
        raise CheckError(f"Could not be read: {error}", "warning", "Only operators may read the status") from None
    if found is None:
        raise CheckError("The deployment has no knowledge base", "skipped")
    if found.search_type is None:
        raise CheckError(f"Unknown: {found.reason}", "skipped")
    if found.search_type == "SEMANTIC":
        raise CheckError(f"Searches do not find words: {found.reason}", "warning")
    return "Searches find words too (HYBRID)"


def _upload(documents: "ApiDocuments", key: str, token: str, timeout: float) -> str:
    from ragstack_local.connection.following import Uploaded  # noqa: PLC0415 - help does without
    from ragstack_local.files.uploads import LocalFile  # noqa: PLC0415

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "probe.md")
        path.write_text(f"# Probe of ragstack doctor\n\nThe word of the probe is {token}.\n", encoding="utf-8")
        ((_, uri, result),) = documents.upload([LocalFile(path, key)], force=True)
    if uri is None or not isinstance(result, Uploaded):
        raise CheckError(f"The probe was not uploaded: {getattr(result, 'reason', result)}")
    status = documents.follow({uri: result}, lambda _statuses: None, timeout)[uri]
    if status != "INDEXED":
        raise CheckError(f"{uri} is {status} after {timeout:g} s at most: {status.reason or 'no reason was given'}")
    return f"{uri} is INDEXED"


def _found(api: "HttpOperations", chosen: dict[str, Any], token: str) -> "RetrieveResponse":
    from ragstack_common.services.search_models import RetrieveRequest  # noqa: PLC0415 - help does without

    return run(api.search(RetrieveRequest(query=f"What is the word of the probe? {token}", **chosen)))


def _search(api: "HttpOperations", chosen: dict[str, Any], token: str) -> str:
    start = time.monotonic()
    while not any(token in result.content for result in _found(api, chosen, token).results):
        if time.monotonic() > start + FINDABLE_SECONDS:
            raise CheckError(f"The probe is INDEXED, but no search found it within {FINDABLE_SECONDS:g} s")
        time.sleep(1.0)
    answer = _found(api, chosen, token)
    if not answer.complete:
        raise CheckError("A part of the search failed: " + ", ".join(each.error or "" for each in answer.slices))
    return f"The probe is found in {answer.milliseconds:.0f} ms"


def _relevance(api: "HttpOperations", chosen: dict[str, Any], token: str) -> str:
    if _found(api, chosen, token).best_relevance is None:
        raise CheckError("Not calibrated: relevance is null, and min_relevance is an error", "warning")
    return "Calibrated"


def _answer(api: "HttpOperations", chosen: dict[str, Any], token: str) -> str:
    from ragstack_common.services.ask_models import AskRequest, AskResponse  # noqa: PLC0415 - help does without

    *_, answer = each(api.ask(AskRequest(question="What is the word of the probe?", **chosen)))
    assert isinstance(answer, AskResponse)
    answerer = answer.answerer
    if token not in answer.answer:
        raise CheckError(
            f"The answer ({answerer.provider}) does not have the probe's word: {answer.answer:.200}", "warning"
        )
    return f"Answered by {answerer.model or answerer.provider}"


def _delete(documents: "ApiDocuments", connection: "Connection | None", key: str, timeout: float) -> str:
    from ragstack_common.core.errors import DocumentNotFoundError  # noqa: PLC0415
    from ragstack_common.core.uris import SIDECAR_SUFFIX  # noqa: PLC0415 - help does without
    from ragstack_local.connection.following import Gone  # noqa: PLC0415

    try:
        document = documents.named(key)
    except DocumentNotFoundError:
        _delete_objects(connection, key + SIDECAR_SUFFIX)  # the API writes it before the upload
        return "Nothing was uploaded"
    try:
        list(documents.remove([document.uri]))
    except RagStackError:
        # The API deletes what the registry knows; if no function reads events, that is nothing.
        if connection is None:
            raise
        _delete_objects(connection, key, key + SIDECAR_SUFFIX)
        return f"{document.uri} is deleted from the bucket"
    status = documents.follow({document.uri: Gone()}, lambda _statuses: None, timeout)[document.uri]
    if status != "DELETED":
        raise CheckError(f"{document.uri} is still {status}", "warning")
    return f"{document.uri} is deleted"


def _delete_objects(connection: "Connection | None", *keys: str) -> None:
    if connection is not None:
        for key in keys:
            connection.client("s3").delete_object(Bucket=connection.bucket, Key=key)
