"""The faults are those that unmodified clients know from the services themselves."""

import random
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
import urllib3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from moto.server import ThreadedMotoServer

from tests.faults.proxy import NO_FAULTS, FaultProxy, Kind, Rates
from tests.faults.requests import THROTTLED, Operation

NAME = "proxied"
KEY = {"pk": {"S": "one"}}


class Always(Rates):
    """Does one thing to every request."""

    kind: Kind

    def choose(self, chance: random.Random) -> Kind:  # noqa: ARG002 - nothing is left to chance
        return self.kind


def always(kind: Kind) -> Rates:
    return type("Only", (Always,), {"kind": kind})(delayed=0)


def client(service: str, url: str, attempts: int = 1) -> Any:
    config = Config(
        retries={"total_max_attempts": attempts, "mode": "standard"}, proxies={}, s3={"addressing_style": "path"}
    )
    session = boto3.Session(aws_access_key_id="local", aws_secret_access_key="local", region_name="us-east-1")
    return session.client(service, endpoint_url=url, config=config)


@pytest.fixture(scope="module")
def aws() -> Iterator[str]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    url = "http://{}:{}".format(*server.get_host_and_port())
    client("s3", url).create_bucket(Bucket=NAME)
    client("sqs", url).create_queue(QueueName=NAME)
    client("dynamodb", url).create_table(
        TableName=NAME,
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    yield url
    server.stop()


@pytest.fixture
def proxy(aws: str) -> Iterator[FaultProxy]:
    with FaultProxy(aws, NO_FAULTS) as running:
        yield running


def call(service: str, url: str, attempts: int = 1) -> Any:
    asked = client(service, url, attempts)
    match service:
        case "dynamodb":
            return asked.get_item(TableName=NAME, Key=KEY)
        case "s3":
            return asked.get_object(Bucket=NAME, Key="a.txt")
        case "sqs":
            return asked.send_message(QueueUrl=f"{url}/123456789012/{NAME}", MessageBody="x")
        case _:
            return asked.put_events(Entries=[{"Source": "s", "DetailType": "d", "Detail": "{}"}])


@pytest.mark.parametrize("service", sorted(THROTTLED))
def test_botocore_understands_the_faults_of_each_service(
    service: str, proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("botocore.endpoint.time.sleep", lambda _: None)
    proxy.rates = always(Kind.THROTTLED)
    with pytest.raises(ClientError) as throttled:
        call(service, proxy.url, attempts=2)
    proxy.rates = always(Kind.BROKEN_BEFORE)
    with pytest.raises(ClientError) as broken:
        call(service, proxy.url)

    assert throttled.value.response["Error"]["Code"] in {failure.code for failure in THROTTLED[service]}
    assert throttled.value.response["ResponseMetadata"]["RetryAttempts"] == 1
    assert broken.value.response["ResponseMetadata"]["HTTPStatusCode"] >= 500
    assert broken.value.response["Error"]["Code"] not in ("", "Unknown")


def test_the_upload_of_a_form_meets_faults_like_other_requests_of_s3(proxy: FaultProxy) -> None:
    form = client("s3", proxy.url).generate_presigned_post(NAME, "form.txt")
    fields = {**form["fields"], "file": ("form.txt", b"text")}
    statuses = [urllib3.request("POST", form["url"], fields=fields, retries=False).status]
    proxy.rates = always(Kind.THROTTLED)

    statuses += [urllib3.request("POST", form["url"], fields=fields, retries=False).status]

    assert statuses == [204, 503]
    assert proxy.faults[Operation("s3", "PostObject"), "throttled"] == 1


def test_a_cancelled_transaction_names_the_action_in_the_way(proxy: FaultProxy) -> None:
    proxy.rates = always(Kind.THROTTLED)
    actions: Any = [{"Put": {"TableName": NAME, "Item": {"pk": {"S": name}}}} for name in "abc"]
    asked = client("dynamodb", proxy.url)

    reasons = []
    for _ in range(30):
        with pytest.raises(ClientError) as caught:
            asked.transact_write_items(TransactItems=actions)
        if caught.value.response["Error"]["Code"] == "TransactionCanceledException":
            reasons.append([reason["Code"] for reason in caught.value.response["CancellationReasons"]])

    assert reasons
    assert all(sorted(each) == ["None", "None", "TransactionConflict"] for each in reasons)


@pytest.mark.parametrize("kind", [kind for kind in Kind if kind is not Kind.PARTIAL])
def test_only_a_request_whose_answer_is_lost_was_carried_out(kind: Kind, proxy: FaultProxy, aws: str) -> None:
    key = {"pk": {"S": kind}}
    proxy.rates = always(kind)

    with pytest.raises((ClientError, BotoCoreError)):
        client("dynamodb", proxy.url).put_item(TableName=NAME, Item=key)

    found = client("dynamodb", aws).get_item(TableName=NAME, Key=key)
    assert ("Item" in found) is (kind in (Kind.DROPPED_AFTER, Kind.BROKEN_AFTER))
    assert proxy.by_kind() == {kind: 1}


def test_a_request_without_a_fault_arrives_as_it_was_sent(proxy: FaultProxy) -> None:
    s3 = client("s3", proxy.url)
    body = bytes(range(256)) * 100

    s3.put_object(Bucket=NAME, Key="ä b+c.txt", Body=body)

    assert s3.get_object(Bucket=NAME, Key="ä b+c.txt")["Body"].read() == body
    assert s3.head_object(Bucket=NAME, Key="ä b+c.txt")["ContentLength"] == len(body)
    assert not proxy.by_kind()


def test_half_of_a_batch_is_carried_out(proxy: FaultProxy, aws: str) -> None:
    proxy.rates = always(Kind.PARTIAL)
    keys = [{"pk": {"S": str(number)}} for number in range(5)]
    url = client("sqs", aws).create_queue(QueueName="halved")["QueueUrl"]

    read = client("dynamodb", proxy.url).batch_get_item(RequestItems={NAME: {"Keys": keys, "ConsistentRead": True}})
    sent = client("sqs", proxy.url).send_message_batch(
        QueueUrl=url, Entries=[{"Id": str(number), "MessageBody": str(number)} for number in range(4)]
    )
    published = client("events", proxy.url).put_events(
        Entries=[{"Source": "s", "DetailType": "d", "Detail": "{}"} for _ in range(3)]
    )

    assert read["UnprocessedKeys"][NAME]["Keys"] == keys[2:]
    assert [each["Id"] for each in sent["Successful"]] == ["0", "1"]
    assert [(each["Id"], each["SenderFault"]) for each in sent["Failed"]] == [("2", False), ("3", False)]
    received = client("sqs", aws).receive_message(QueueUrl=url, MaxNumberOfMessages=10)["Messages"]
    assert {each["Body"] for each in received} == {"0", "1"}
    assert published["FailedEntryCount"] == 2
    assert ["EventId" in entry for entry in published["Entries"]] == [True, False, False]
