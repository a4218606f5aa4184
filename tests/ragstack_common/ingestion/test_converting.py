"""The function `converter`: texts, refusals, attachments, and documents that change meanwhile."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from email.message import EmailMessage
from typing import Any
from unittest.mock import patch

import boto3
import pytest
from hypothesis import given
from hypothesis import strategies as st
from moto import mock_aws

from ragstack_common.core.artefacts import attachments_of, text_of
from ragstack_common.core.uris import MAX_URI_CHARACTERS
from ragstack_common.ingestion import conversions
from ragstack_common.ingestion.conversions import Inputs
from ragstack_common.ingestion.converting import MAX_ATTACHMENTS, MAX_DEPTH, SECONDS_FOR_ONE, ConversionService
from ragstack_common.ingestion.messages import QueueMessage, convert
from ragstack_common.ingestion.services import Services
from ragstack_common.reading.conversion import Attachment
from ragstack_common.reading.converting import Converted, to_markdown
from ragstack_common.reading.formats import UnreadableDocument
from ragstack_common.settings.ingestion import IngestionSettings
from tests.support.knowledge_base import DATA_SOURCE, KNOWLEDGE_BASE
from tests.support.registry_table import TABLE

BUCKET, REGION = "documents", "eu-west-1"
QUEUES = ("ingestion", "conversion", "large_conversion", "status", "receipts", "jobs", "dead_letter")


def in_this_process(data: bytes, name: str, charset: str | None) -> Converted:
    found = to_markdown(data, name, charset, "off", 1024**3)
    assert isinstance(found, Converted)
    return found


@dataclass
class Converting:
    """The function with moto's services."""

    services: Services
    s3: Any
    sqs: Any
    convert: Callable[[bytes, str, str | None], Converted] = in_this_process
    converted: list[str] = field(default_factory=list)

    def process(self, *keys: str, seconds_left: float = SECONDS_FOR_ONE) -> list[str]:
        def counted(data: bytes, name: str, charset: str | None) -> Converted:
            self.converted.append(name)
            return self.convert(data, name, charset)

        messages = [QueueMessage(key, convert(f"s3://{BUCKET}/{key}", large=False), 1) for key in keys]
        return ConversionService(self.services, counted).process(messages, lambda: seconds_left)

    def put(self, key: str, body: bytes = b"- note", sidecar: dict[str, Any] | None = None) -> None:
        self.s3.put_object(Bucket=BUCKET, Key=key, Body=body)
        if sidecar is not None:
            body = json.dumps({"metadataAttributes": sidecar}).encode()
            self.s3.put_object(Bucket=BUCKET, Key=f"{key}.metadata.json", Body=body)

    def objects(self) -> list[str]:
        return [each["Key"] for each in self.s3.list_objects_v2(Bucket=BUCKET).get("Contents", [])]

    def text(self, key: str) -> str:
        return str(self.s3.get_object(Bucket=BUCKET, Key=text_of(key))["Body"].read().decode())

    def refusal(self, key: str) -> str | None:
        made = conversions.find(self.s3, BUCKET, key)
        assert made is not None
        return made.conversion.refusal

    def checked(self) -> list[str]:
        url = self.services.settings.ingestion_queue_url
        answer = self.sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10)
        bodies = [json.loads(letter["Body"]) for letter in answer.get("Messages", [])]
        return [uri.removeprefix(f"s3://{BUCKET}/") for body in bodies for uri in body["check"]]


@pytest.fixture
def converting() -> Iterator[Converting]:
    with mock_aws():
        session: Any = boto3.Session("test", "test", region_name=REGION)
        s3, sqs, dynamodb = (session.client(name) for name in ("s3", "sqs", "dynamodb"))
        s3.create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": REGION})
        urls = {f"{name}_queue_url": sqs.create_queue(QueueName=name)["QueueUrl"] for name in QUEUES}
        settings = IngestionSettings(
            knowledge_base_id=KNOWLEDGE_BASE, data_source_id=DATA_SOURCE, registry_table=TABLE, **urls
        )
        others: dict[str, Any] = {"agent": session.client("bedrock-agent"), "events": session.client("events")}
        yield Converting(Services(settings, dynamodb=dynamodb, s3=s3, sqs=sqs, **others), s3, sqs)


def mail(*files: tuple[str, bytes], text: str = "See the files.") -> bytes:
    made = EmailMessage()
    made["Subject"] = "Offer"
    made.set_content(text)
    for name, data in files:
        made.add_attachment(data, maintype="application", subtype="octet-stream", filename=name)
    return made.as_bytes()


def test_the_text_is_next_to_the_document_which_is_checked_then(converting: Converting) -> None:
    converting.put("a/notes.org", b"* Plans\n\nWe build.")

    assert converting.process("a/notes.org") == []

    assert converting.text("a/notes.org") == "# Plans\n\nWe build."
    assert converting.checked() == ["a/notes.org"]


def test_a_text_that_is_up_to_date_is_not_made_again(converting: Converting) -> None:
    converting.put("notes.org")
    converting.process("notes.org", "notes.org")
    assert converting.converted == ["notes.org"]

    converting.put("notes.org", b"- another")
    converting.process("notes.org")

    assert converting.text("notes.org") == "- another"


def test_a_file_that_cannot_be_read_has_an_empty_text_that_says_why(converting: Converting) -> None:
    converting.put("film.mkv", b"\x1a\x45\xdf\xa3" + bytes(200))

    assert converting.process("film.mkv") == []

    assert converting.text("film.mkv") == ""
    assert "which is not supported: use one of" in str(converting.refusal("film.mkv"))
    assert converting.checked() == ["film.mkv"]


def test_a_long_reason_in_any_script_fits_into_the_metadata_of_an_object(converting: Converting) -> None:
    def refuse(*_: object) -> Converted:
        raise UnreadableDocument("\N{GRINNING FACE}" * 5000)

    converting.convert = refuse
    converting.put("notes.org")

    converting.process("notes.org")

    reason = converting.refusal("notes.org")
    assert reason is not None
    assert set(reason) == {"\N{GRINNING FACE}"}
    head = converting.s3.head_object(Bucket=BUCKET, Key=text_of("notes.org"))
    assert sum(len(name) + len(value) for name, value in head["Metadata"].items()) <= 2048


def test_a_document_that_is_gone_is_checked_and_nothing_is_made(converting: Converting) -> None:
    assert converting.process("gone.org") == []

    assert converting.objects() == []
    assert converting.checked() == ["gone.org"]


def test_a_document_that_changes_while_it_is_read_is_not_up_to_date_then(converting: Converting) -> None:
    def replaced(data: bytes, name: str, charset: str | None) -> Converted:
        converting.put("notes.org", b"- newer")
        return in_this_process(data, name, charset)

    converting.convert = replaced
    converting.put("notes.org", b"- older")
    converting.process("notes.org")

    made = conversions.find(converting.s3, BUCKET, "notes.org")
    head = converting.s3.head_object(Bucket=BUCKET, Key="notes.org")
    assert made is not None
    assert not made.inputs.serve(Inputs.wanted(head["ETag"], None, "off"))


def test_attachments_are_documents_with_the_attributes_of_the_mail(converting: Converting) -> None:
    converting.put("offer.eml", mail(("a.txt", b"one"), ("b.txt", b"two")), {"corpus": "sales"})
    converting.process("offer.eml")
    folder = attachments_of("offer.eml")
    sidecar = converting.s3.get_object(Bucket=BUCKET, Key=f"{folder}b.txt.metadata.json")["Body"].read()
    assert json.loads(sidecar) == {"metadataAttributes": {"corpus": "sales"}}
    before = converting.s3.head_object(Bucket=BUCKET, Key=f"{folder}b.txt")["LastModified"]

    converting.s3.delete_object(Bucket=BUCKET, Key="offer.eml.metadata.json")
    converting.put("offer.eml", mail(("b.txt", b"two"), ("c.txt", b"three")))
    converting.process("offer.eml")

    present = converting.objects()
    assert [key for key in present if key.startswith(folder)] == [f"{folder}b.txt", f"{folder}c.txt"]
    after = converting.s3.head_object(Bucket=BUCKET, Key=f"{folder}b.txt")["LastModified"]
    assert after == before, "an attachment that stays is not a new version"


def test_an_attachment_whose_name_begins_like_another_one_goes(converting: Converting) -> None:
    converting.put("offer.eml", mail(("a.txt", b"one"), ("a.txt2.md", b"two")))
    converting.process("offer.eml")
    folder = attachments_of("offer.eml")
    converting.put(text_of(f"{folder}a.txt"))  # as if its text had been converted

    converting.put("offer.eml", mail(("a.txt", b"one")))
    converting.process("offer.eml")

    present = [each for each in converting.objects() if each.startswith(folder)]
    assert present == [f"{folder}a.txt", text_of(f"{folder}a.txt")]


def test_attachments_with_long_names_fit_into_a_uri(converting: Converting) -> None:
    key = f"{'mails/' * 10}offer.eml"
    long = "Price list of the year for all customers in the north.csv"
    converting.put(key, mail((long, b"a\n1\n"), (f"New {long}", b"a\n2\n"), ("short.org", b"- x")))

    converting.process(key)

    folder = attachments_of(key)
    names = [each.removeprefix(folder) for each in converting.objects() if each.startswith(folder)]
    assert [name.rpartition("~")[2] for name in names] == ["2.csv", "1.csv", "short.org"]
    assert all(name.startswith(("Price list of the year", "New Price list", "short")) for name in names)
    assert all(len(f"s3://{BUCKET}/{folder}{name}") <= MAX_URI_CHARACTERS for name in names)


def test_an_attachment_of_a_format_that_is_not_read_is_no_document(converting: Converting) -> None:
    png = b"\x89PNG\r\n\x1a\n" + bytes(100)
    converting.put("offer.eml", mail(("song.mp3", b"ID3" + bytes(500)), ("logo.png", png), ("a.csv", b"price\n12\n")))

    converting.process("offer.eml")

    folder, present = attachments_of("offer.eml"), converting.objects()
    assert [key for key in present if key.startswith(folder)] == [f"{folder}a.csv"]
    assert "song.mp3" in converting.text("offer.eml")
    made = conversions.find(converting.s3, BUCKET, "offer.eml")
    assert made is not None
    assert made.inputs.recognition == "off", "with text recognition, the picture would be a document"


def test_other_attributes_of_a_mail_without_attachments_change_nothing(converting: Converting) -> None:
    converting.put("offer.eml", mail(), {"corpus": "sales"})
    converting.process("offer.eml")

    converting.put("offer.eml", mail(), {"corpus": "legal"})
    made = conversions.find(converting.s3, BUCKET, "offer.eml")

    assert made is not None
    assert made.inputs.sidecar is None


def test_mails_within_mails_end(converting: Converting) -> None:
    deepest = "/".join(["offer.eml.ragstack"] + ["inner.eml.ragstack"] * (MAX_DEPTH - 1)) + "/last.eml"
    converting.put(deepest, mail(("a.txt", b"one")))

    converting.process(deepest)

    assert converting.refusal(deepest) == f"It is a mail within {MAX_DEPTH} mails: upload it by itself"


def test_a_mail_with_too_many_attachments_says_so(converting: Converting) -> None:
    files = tuple(Attachment(f"{number}.txt", b"x") for number in range(MAX_ATTACHMENTS + 1))
    converting.convert = lambda *_: Converted("A mail.", files)
    converting.put("offer.eml", mail())

    converting.process("offer.eml")

    assert "501 attachments; 500 are read" in str(converting.refusal("offer.eml"))


def test_a_message_for_which_there_is_no_time_comes_again(converting: Converting) -> None:
    converting.put("notes.org")

    assert converting.process("notes.org", seconds_left=SECONDS_FOR_ONE - 1) == ["notes.org"]

    assert converting.converted == converting.checked() == []


@pytest.mark.parametrize("large", [False, True])
def test_a_message_whose_call_failed_comes_again_soon_from_its_own_queue(converting: Converting, large: bool) -> None:
    settings = converting.services.settings
    url = settings.large_conversion_queue_url if large else settings.conversion_queue_url
    converting.sqs.set_queue_attributes(QueueUrl=url, Attributes={"VisibilityTimeout": "2880"})
    converting.sqs.send_message(QueueUrl=url, MessageBody=convert(f"s3://{BUCKET}/notes.org", large=large))
    [received] = converting.sqs.receive_message(QueueUrl=url)["Messages"]
    message = QueueMessage(received["MessageId"], received["Body"], 1, received["ReceiptHandle"])
    converting.sqs.delete_queue(QueueUrl=settings.ingestion_queue_url)  # the check that follows cannot be requested

    with patch("ragstack_common.ingestion.messages.FIRST_PAUSE_SECONDS", 0):
        again = ConversionService(converting.services, in_this_process).process([message], lambda: SECONDS_FOR_ONE)

    assert again == [message.message_id]
    assert len(converting.sqs.receive_message(QueueUrl=url)["Messages"]) == 1


def test_a_malformed_message_is_dead_lettered(converting: Converting) -> None:
    service = ConversionService(converting.services, in_this_process)

    assert service.process([QueueMessage("m", '{"convert": 3}', 1)], lambda: SECONDS_FOR_ONE) == []

    url = converting.services.settings.dead_letter_queue_url
    assert len(converting.sqs.receive_message(QueueUrl=url)["Messages"]) == 1


ETAGS = st.sampled_from(["one", "two"])
SETTINGS = st.sampled_from(["off", "rapidocr", "textract"])


@given(ETAGS, st.none() | ETAGS, st.none() | SETTINGS, ETAGS, st.none() | ETAGS, SETTINGS)
def test_a_text_serves_until_something_changes_on_which_it_depends(
    etag: str, sidecar: str | None, recognition: str | None, etag_now: str, sidecar_now: str | None, setting: str
) -> None:
    made = Inputs(etag, sidecar, recognition)

    serves = made.serve(Inputs.wanted(etag_now, sidecar_now, setting))

    depends = sidecar is not None and sidecar != (sidecar_now or "")
    assert serves == (etag == etag_now and not depends and recognition in (None, setting))
    assert not Inputs(etag, sidecar, recognition, readers=0).serve(Inputs.wanted(etag_now, sidecar_now, setting))
