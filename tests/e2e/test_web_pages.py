"""What a web page, or another user of the machine, may do with a running local stack: nothing."""

import io
import json
import stat
import zipfile
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from tests.e2e.support import LocalStack, client
from tests.support.web_pages import EVIL, PAGES, send

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("local stack")]

RESET = "/_ministack/reset"
FUNCTIONS = "/2015-03-31/functions"


def endpoint(stack: LocalStack) -> str:
    return str(stack.connection.aws_endpoint)


@pytest.mark.parametrize("page", PAGES.values(), ids=PAGES)
def test_a_web_page_reaches_no_service_and_wipes_nothing(stack: LocalStack, page: dict[str, str]) -> None:
    connection = stack.connection
    api = connection.api_url.removeprefix(endpoint(stack))
    search = json.dumps({"query": "heron"}).encode()

    answers = [
        send(endpoint(stack), "POST", RESET, b"", **page),
        send(endpoint(stack), "GET", "/", **page),
        send(endpoint(stack), "POST", "/", b"Action=ListQueues", **page),
        send(endpoint(stack), "GET", "/?Action=ListQueues&Version=2012-11-05", **page),
        send(endpoint(stack), "PUT", f"/{connection.bucket}/planted.md", b"x", **page),
        send(endpoint(stack), "POST", f"{api}/api/retrieve", search, **page),
        send(str(connection.bedrock_endpoint), "POST", "/knowledgebases/", b"{}", **page),
        send(str(connection.answers_url), "POST", "/api/ask", b'{"question": "heron"}', **page),
    ]

    assert [answer.status for answer in answers] == [403] * len(answers)
    assert [answer.cors for answer in answers] == [{}] * len(answers)
    assert all(answer.json()["message"] for answer in answers)
    assert client(connection, "s3").head_bucket(Bucket=connection.bucket)
    with pytest.raises(ClientError, match="404"):
        client(connection, "s3").head_object(Bucket=connection.bucket, Key="planted.md")


def test_a_web_page_creates_no_function(stack: LocalStack) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("index.py", "def handler(event, context): return 'owned'")
    body = json.dumps({"FunctionName": "owned", "Runtime": "python3.11"}).encode()

    created = send(endpoint(stack), "POST", FUNCTIONS, body, Origin=EVIL, Content_Type="text/plain")
    invoked = send(endpoint(stack), "POST", f"{FUNCTIONS}/owned/invocations", b"{}", Origin=EVIL)
    listed = client(stack.connection, "lambda").list_functions()["Functions"]

    assert (created.status, invoked.status) == (403, 403)
    assert "owned" not in [function["FunctionName"] for function in listed]


def test_a_link_in_a_message_creates_nothing(stack: LocalStack) -> None:
    link = "/?Action=CreateQueue&QueueName=planted&Version=2012-11-05"

    answer = send(endpoint(stack), "GET", link, Sec_Fetch_Site="none", Sec_Fetch_Mode="navigate")
    queues = client(stack.connection, "sqs").list_queues()["QueueUrls"]

    assert answer.status == 403
    assert not [queue for queue in queues if queue.endswith("planted")]


def test_a_page_opens_no_web_socket(stack: LocalStack) -> None:
    handshake = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
        "Sec-WebSocket-Version": "13",
    }

    answer = send(endpoint(stack), "GET", "/_aws/execute-api/12345678/dev", Origin=EVIL, **handshake)

    assert answer.status == 403


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", RESET),
        ("POST", f"{RESET}?init=1"),
        ("POST", "/_ministack/%72eset"),
        ("POST", "/%5fministack/reset"),
        ("POST", f"{RESET}/"),
        ("POST", f"/x/..{RESET}"),
        ("POST", f"/{RESET}"),
        ("DELETE", RESET),
        ("POST", "/_ministack/config"),
        ("POST", "/_ministack/rds/iam-auth"),
    ],
)
def test_a_request_cannot_reset_or_reconfigure_the_stack(stack: LocalStack, method: str, path: str) -> None:
    answer = send(endpoint(stack), method, path, b"{}")

    assert answer.status in (400, 403, 404, 405)
    assert b'"ok"' not in answer.body
    assert client(stack.connection, "s3").head_bucket(Bucket=stack.connection.bucket)


def test_health_and_everything_that_programs_use_stays_open(stack: LocalStack) -> None:
    connection = stack.connection
    s3: Any = client(connection, "s3")
    virtual: Any = boto3.client(
        "s3",
        endpoint_url=endpoint(stack).replace("127.0.0.1", "s3.localhost"),
        aws_access_key_id="a",
        aws_secret_access_key="b",
        region_name="us-east-1",
        config=Config(s3={"addressing_style": "virtual"}, proxies={}),
    )
    key = "open/heron.md"
    link = s3.generate_presigned_url("put_object", Params={"Bucket": connection.bucket, "Key": key})
    path = link.removeprefix(endpoint(stack))

    uploaded = send(endpoint(stack), "PUT", path, b"A heron.")
    chunked = s3.upload_fileobj(io.BytesIO(b"heron " * 2_000_000), connection.bucket, "open/large.bin")
    read = send(
        endpoint(stack),
        "GET",
        s3.generate_presigned_url("get_object", Params={"Bucket": connection.bucket, "Key": key}).removeprefix(
            endpoint(stack)
        ),
        Sec_Fetch_Site="none",
    )
    by_virtual_host = send(
        endpoint(stack),
        "GET",
        virtual.generate_presigned_url("get_object", Params={"Bucket": connection.bucket, "Key": key}).partition(
            endpoint(stack).rpartition(":")[2]
        )[2],
        Host=f"{connection.bucket}.s3.localhost:{endpoint(stack).rpartition(':')[2]}",
    )
    health = send(endpoint(stack), "GET", "/_ministack/health")
    through_the_api, _ = stack.request("POST", "/api/retrieve", {"query": "heron"})
    s3.delete_object(Bucket=connection.bucket, Key="open/large.bin")

    assert (uploaded.status, chunked) == (200, None)
    assert (read.status, read.body, read.cors) == (200, b"A heron.", {})
    assert by_virtual_host.body == b"A heron."
    assert health.status == 200
    assert through_the_api == 200


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="looks at sockets in /proc")
def test_the_stack_listens_only_on_its_loopback_ports(stack: LocalStack) -> None:
    sockets = {
        str(found.readlink())
        for process_id in stack.processes()
        for found in Path(f"/proc/{process_id}/fd").glob("*")
        if found.is_symlink()
    }
    tables = [Path(f"/proc/net/{name}").read_text().splitlines()[1:] for name in ("tcp", "tcp6", "udp", "udp6")]
    lines = [line.split() for table in tables for line in table]
    # Source: proc_net(5); state 0A is LISTEN, and a UDP socket that waits is 07.
    listening = {line[1] for line in lines if line[3] in ("0A", "07") and f"socket:[{line[9]}]" in sockets}

    assert listening == {f"0100007F:{port:04X}" for port in stack.ports}


def test_no_other_user_can_read_what_the_stack_writes(stack: LocalStack) -> None:
    stack.put("private/heron.md", "A secret heron.")
    data = stack.folder / "data"
    # The code of the functions keeps the modes of the checkout; other users cannot read it.
    written = [path for name in ("s3", "bedrock", "logs") for path in (data / name).rglob("*")]

    readable = [str(path) for path in [*written, stack.folder / "home" / "running.json"] if path.stat().st_mode & 0o077]

    assert {"heron.md", "bedrock.sqlite3", "ministack.log", "bedrock.log"} <= {path.name for path in written}
    assert stat.S_IMODE(data.stat().st_mode) == 0o700
    assert readable == []
