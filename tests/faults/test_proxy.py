"""The faults are those that unmodified clients know from the services themselves."""

import random
from collections.abc import Callable, Iterator
from typing import Any

import boto3
import pytest
import urllib3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from moto.server import ThreadedMotoServer

from tests.faults.proxy import NO_FAULTS, FaultProxy, Kind, Rates
from tests.faults.requests import Operation

TABLE = "proxied"
KEY = {"pk": {"S": "one"}}


@pytest.fixture(scope="module")
def aws() -> Iterator[str]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        yield "http://{}:{}".format(*server.get_host_and_port())
    finally:
        server.stop()


@pytest.fixture
def proxy(aws: str) -> Iterator[FaultProxy]:
    with FaultProxy(aws, NO_FAULTS) as running:
        yield running


def client(service: str, url: str, attempts: int = 1) -> Any:
    config = Config(
        retries={"total_max_attempts": attempts, "mode": "standard"}, proxies={}, s3={"addressing_style": "path"}
    )
    session = boto3.Session(aws_access_key_id="local", aws_secret_access_key="local", region_name="us-east-1")
    return session.client(service, endpoint_url=url, config=config)


@pytest.fixture
def table(aws: str) -> Iterator[Any]:
    direct = client("dynamodb", aws)
    direct.create_table(
        TableName=TABLE,
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    yield direct
    direct.delete_table(TableName=TABLE)


@pytest.fixture
def bucket(aws: str) -> str:
    client("s3", aws).create_bucket(Bucket="proxied")
    return "proxied"


@pytest.fixture
def queue(aws: str) -> Iterator[str]:
    direct = client("sqs", aws)
    url: str = direct.create_queue(QueueName="proxied")["QueueUrl"]
    yield url
    direct.delete_queue(QueueUrl=url)


def call_of(service: str, url: str, attempts: int = 1) -> Callable[[], Any]:
    asked = client(service, url, attempts)
    calls: dict[str, Callable[[], Any]] = {
        "dynamodb": lambda: asked.get_item(TableName=TABLE, Key=KEY),
        "s3": lambda: asked.get_object(Bucket="proxied", Key="a.txt"),
        "sqs": lambda: asked.send_message(QueueUrl=f"{url}/123456789012/proxied", MessageBody="x"),
        "events": lambda: asked.put_events(Entries=[{"Source": "s", "DetailType": "d", "Detail": "{}"}]),
    }
    return calls[service]


CODES = {
    "dynamodb": {"ProvisionedThroughputExceededException", "ThrottlingException", "RequestLimitExceeded"},
    "s3": {"SlowDown"},
    "sqs": {"RequestThrottled", "ThrottlingException"},
    "events": {"ThrottlingException"},
}


@pytest.mark.parametrize("service", sorted(CODES))
def test_a_throttled_request_is_told_in_the_words_of_its_service(service: str, proxy: FaultProxy) -> None:
    proxy.rates = Rates(throttled=1, broken=0, dropped=0, partial=0, delayed=0)
    call = call_of(service, proxy.url)

    codes = set()
    for _ in range(12):
        with pytest.raises(ClientError) as caught:
            call()
        codes.add(caught.value.response["Error"]["Code"])

    assert codes == CODES[service]


@pytest.mark.parametrize("service", sorted(CODES))
def test_botocore_knows_that_a_throttled_request_is_worth_another_attempt(
    service: str, proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    proxy.rates = Rates(throttled=1, broken=0, dropped=0, partial=0, delayed=0)
    monkeypatch.setattr("botocore.endpoint.time.sleep", lambda _: None)
    call = call_of(service, proxy.url, attempts=2)

    with pytest.raises(ClientError) as caught:
        call()

    assert caught.value.response["ResponseMetadata"]["RetryAttempts"] == 1


@pytest.mark.parametrize("service", sorted(CODES))
def test_a_broken_service_answers_with_a_status_above_499(service: str, proxy: FaultProxy) -> None:
    proxy.rates = Rates(throttled=0, broken=1, dropped=0, partial=0, delayed=0)

    with pytest.raises(ClientError) as caught:
        call_of(service, proxy.url)()

    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] >= 500
    assert caught.value.response["Error"]["Code"] not in ("", "Unknown")


def test_the_upload_of_a_form_meets_faults_like_other_requests_of_s3(proxy: FaultProxy) -> None:
    s3 = client("s3", proxy.url)
    s3.create_bucket(Bucket="forms")
    form = s3.generate_presigned_post("forms", "a.txt")
    fields = {**form["fields"], "file": ("a.txt", b"text")}
    statuses = [urllib3.request("POST", form["url"], fields=fields, retries=False).status]
    proxy.rates = Rates(throttled=1, broken=0, dropped=0, partial=0, delayed=0)

    statuses += [urllib3.request("POST", form["url"], fields=fields, retries=False).status]

    assert statuses == [204, 503]
    assert proxy.faults[Operation("s3", "PostObject"), "throttled"] == 1


def test_an_error_for_a_head_request_has_no_body(proxy: FaultProxy, bucket: str) -> None:
    proxy.rates = Rates(throttled=1, broken=0, dropped=0, partial=0, delayed=0)

    with pytest.raises(ClientError) as caught:
        client("s3", proxy.url).head_object(Bucket=bucket, Key="a.txt")

    assert caught.value.response["Error"]["Code"] == "503"


def test_a_cancelled_transaction_names_the_action_in_the_way(proxy: FaultProxy, table: Any) -> None:
    proxy.rates = Rates(throttled=1, broken=0, dropped=0, partial=0, delayed=0)
    actions: Any = [{"Put": {"TableName": TABLE, "Item": {"pk": {"S": name}}}} for name in "abc"]
    asked = client("dynamodb", proxy.url)

    reasons = []
    for _ in range(20):
        with pytest.raises(ClientError) as caught:
            asked.transact_write_items(TransactItems=actions)
        if caught.value.response["Error"]["Code"] == "TransactionCanceledException":
            reasons.append([reason["Code"] for reason in caught.value.response["CancellationReasons"]])

    assert reasons
    assert all(sorted(each) == ["None", "None", "TransactionConflict"] for each in reasons)
    assert table.scan(TableName=TABLE)["Count"] == 0


class _Always(Rates):
    """Does one thing to every request."""

    kind: Kind

    def choose(self, chance: random.Random) -> Kind:  # noqa: ARG002 - nothing is left to chance
        return self.kind


def always(kind: Kind) -> Rates:
    return type("Only", (_Always,), {"kind": kind})(delayed=0)


@pytest.mark.parametrize("kind", [Kind.DROPPED_AFTER, Kind.BROKEN_AFTER])
def test_a_request_whose_answer_is_lost_was_carried_out(kind: Kind, proxy: FaultProxy, table: Any) -> None:
    proxy.rates = always(kind)

    with pytest.raises((ClientError, BotoCoreError)):
        client("dynamodb", proxy.url).put_item(TableName=TABLE, Item=KEY)

    assert table.get_item(TableName=TABLE, Key=KEY)["Item"] == KEY
    assert proxy.by_kind() == {kind: 1}


@pytest.mark.parametrize("kind", [Kind.DROPPED_BEFORE, Kind.BROKEN_BEFORE, Kind.THROTTLED])
def test_a_request_that_is_stopped_before_was_not_carried_out(kind: Kind, proxy: FaultProxy, table: Any) -> None:
    proxy.rates = always(kind)

    with pytest.raises((ClientError, BotoCoreError)):
        client("dynamodb", proxy.url).put_item(TableName=TABLE, Item=KEY)

    assert "Item" not in table.get_item(TableName=TABLE, Key=KEY)


def test_what_is_not_failed_arrives_as_it_was_sent(proxy: FaultProxy, bucket: str) -> None:
    s3 = client("s3", proxy.url)
    body = bytes(range(256)) * 100

    s3.put_object(Bucket=bucket, Key="ä b+c.txt", Body=body)

    assert s3.get_object(Bucket=bucket, Key="ä b+c.txt")["Body"].read() == body
    assert s3.head_object(Bucket=bucket, Key="ä b+c.txt")["ContentLength"] == len(body)
    assert [each["Key"] for each in s3.list_objects_v2(Bucket=bucket)["Contents"]] == ["ä b+c.txt"]
    assert not proxy.by_kind()


def test_half_of_a_batch_of_reads_comes_back_as_unprocessed(proxy: FaultProxy, table: Any) -> None:
    keys = [{"pk": {"S": str(number)}} for number in range(5)]
    for key in keys:
        table.put_item(TableName=TABLE, Item=key)
    proxy.rates = always(Kind.PARTIAL)

    answer = client("dynamodb", proxy.url).batch_get_item(RequestItems={TABLE: {"Keys": keys, "ConsistentRead": True}})

    assert len(answer["Responses"][TABLE]) == 2
    assert answer["UnprocessedKeys"][TABLE]["Keys"] == keys[2:]


def test_half_of_a_batch_of_messages_is_not_sent(aws: str, proxy: FaultProxy, queue: str) -> None:
    proxy.rates = always(Kind.PARTIAL)

    answer = client("sqs", proxy.url).send_message_batch(
        QueueUrl=queue, Entries=[{"Id": str(number), "MessageBody": str(number)} for number in range(4)]
    )

    assert [each["Id"] for each in answer["Successful"]] == ["0", "1"]
    assert [(each["Id"], each["SenderFault"]) for each in answer["Failed"]] == [("2", False), ("3", False)]
    got = client("sqs", aws).receive_message(QueueUrl=queue, MaxNumberOfMessages=10)["Messages"]
    assert {each["Body"] for each in got} == {"0", "1"}


def test_half_of_a_batch_of_events_is_refused(proxy: FaultProxy) -> None:
    proxy.rates = always(Kind.PARTIAL)

    answer = client("events", proxy.url).put_events(
        Entries=[{"Source": "s", "DetailType": "d", "Detail": "{}"} for _ in range(3)]
    )

    assert answer["FailedEntryCount"] == 2
    assert ["EventId" in entry for entry in answer["Entries"]] == [True, False, False]


def test_the_same_seed_plans_the_same_for_each_operation_whatever_else_is_asked(aws: str) -> None:
    reads, writes = Operation("dynamodb", "GetItem"), Operation("dynamodb", "PutItem")

    with FaultProxy(aws, seed=7) as one, FaultProxy(aws, seed=7) as other:
        alone = [one.plan(reads)[:2] for _ in range(200)]
        among_others = []
        for _ in range(200):
            other.plan(writes)
            among_others.append(other.plan(reads)[:2])

    assert alone == among_others
    assert len({kind for _, kind in alone}) > 3
