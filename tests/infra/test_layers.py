"""The layers: built once, from wheels that Lambda can load, small."""

import io
import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import grimp
import openpyxl
import pytest
import urllib3

from infra import layers
from infra.layers import (
    AWS_SERVICES,
    BUILD,
    NOT_DEPLOYED,
    REQUIREMENTS,
    SOURCE,
    LayerError,
    Wheels,
    common_layer,
    dependencies_layer,
)
from infra.target import Target
from tests.support.aws_service import AwsService, aws_service
from tests.support.children import child
from tests.support.knowledge_base import KNOWLEDGE_BASE, hit, hits
from tests.support.otlp import collector
from tests.support.ports import free_ports
from tests.support.waiting import eventually

from .conftest import ROOT


def built(target: Target) -> Path:
    fingerprint = layers._fingerprint(Wheels.for_target(target), layers._pins(REQUIREMENTS))
    layer = BUILD / f"{target}-{fingerprint}.zip"
    if not layer.is_file():
        pytest.skip(f"the layer for {target} has not been built (python -m infra.layers does it)")
    return layer


def extra(name: str, target: Target = Target.AWS) -> Path:
    fingerprint = layers._fingerprint(Wheels.for_target(target), layers.extra_pins(name))
    layer = BUILD / f"{name}-{target}-{fingerprint}.zip"
    if not layer.is_file():
        pytest.skip(f"the layer {name} has not been built (python -m infra.layers does it)")
    return layer


def megabytes(layer: Path) -> float:
    with zipfile.ZipFile(layer) as archive:
        return sum(entry.file_size for entry in archive.infolist()) / 1e6


def unzipped(folder: Path, *built_layers: Path) -> str:
    """Unpack layers of functions; return the import path that they make with the shared code."""
    for layer in built_layers:
        with zipfile.ZipFile(layer) as archive:
            archive.extractall(folder)
    return f"{folder / 'python'}:{common_layer(Target.LOCAL) / 'python'}"


def environment(service: str, searches: AwsService, **more: str) -> dict[str, str]:
    return {
        "API_AUTH": "none",
        "AWS_REGION": "eu-west-1",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_ENDPOINT_URL_BEDROCK_AGENT_RUNTIME": searches.endpoint,
        "KNOWLEDGE_BASE_ID": KNOWLEDGE_BASE,
        "POWERTOOLS_METRICS_NAMESPACE": "RAGStack",
        "POWERTOOLS_SERVICE_NAME": service,
        "PYTHONDONTWRITEBYTECODE": "1",  # the layer is an asset of the stacks too
        **more,
    }


@pytest.mark.parametrize("target", Target)
def test_the_layer_fits_into_lambda(target: Target) -> None:
    assert megabytes(built(target)) < 60 < layers.MAX_UNZIPPED_MB


def test_the_function_with_every_layer_fits_into_lambda() -> None:
    searching = [built(Target.AWS), *(extra(name) for name in layers.EXTRA_REQUIREMENTS if name != layers.VIEWER)]
    showing = [built(Target.AWS), extra(layers.VIEWER)]

    for needed in (searching, showing):
        assert sum(megabytes(layer) for layer in needed) < 200 < layers.MAX_UNZIPPED_MB


@pytest.mark.parametrize(
    ("name", "packages", "left_out", "most"),
    [
        ("milvus", {"grpc", "numpy", "pymilvus"}, {"milvus_lite", "botocore", "urllib3"}, layers.MAX_UNZIPPED_MB),
        (layers.TRACING, {"google", "opentelemetry", "requests"}, set(), 10),
        (layers.VIEWER, {"justhtml", "PIL", "pypdfium2", "xlrd"}, {"numpy", "pandas"}, 60),
    ],
)
def test_an_extra_layer_has_no_shared_packages(name: str, packages: set[str], left_out: set[str], most: int) -> None:
    shared = {path.split("/")[1] for path in zipfile.ZipFile(built(Target.AWS)).namelist()}
    paths = zipfile.ZipFile(extra(name)).namelist()

    own = {path.split("/")[1] for path in paths}
    assert packages <= own
    assert own & (shared | left_out) == set()
    assert not [path for path in paths if "/tests/" in path]
    assert megabytes(extra(name)) < most


def test_a_search_exports_spans_with_nothing_but_the_layers(tmp_path: Path) -> None:
    path = unzipped(tmp_path, built(Target.LOCAL), extra(layers.TRACING, Target.LOCAL))
    event = json.loads((ROOT / "tests" / "events" / "api_gateway_retrieve.json").read_text())
    script = """
import json, sys
from types import SimpleNamespace
sys.path.append(sys.argv[1])
from lambdas.query.handler import handler
context = SimpleNamespace(function_name="q", memory_limit_in_mb=1, invoked_function_arn="arn", aws_request_id="r-1")
handler(json.load(sys.stdin), context)
"""
    with collector() as collecting, aws_service("bedrock-agent-runtime") as searches:
        searches.program("Retrieve", hits(hit()))

        finished = subprocess.run(
            [sys.executable, "-S", "-c", script, str(ROOT)],
            capture_output=True,
            check=False,
            env=environment("query", searches, PYTHONPATH=path, OTEL_EXPORTER_OTLP_ENDPOINT=collecting.endpoint),
            input=json.dumps(event),
            text=True,
        )

        assert finished.returncode == 0, finished.stderr
        assert {"function query", "retrieve bedrock"} <= collecting.spans.keys()


def test_the_server_of_answers_starts_with_nothing_but_the_layers(tmp_path: Path) -> None:
    path = unzipped(tmp_path, built(Target.LOCAL), extra("answers", Target.LOCAL))
    assert os.access(ROOT / "lambdas" / "answers" / "run.sh", os.X_OK)  # Lambda executes it
    (port,) = free_ports(1)
    started = (ROOT / "lambdas" / "answers" / "run.sh").read_text()
    # Where the layers are, and without the packages of this environment.
    script = started.replace("/opt/python", path).replace("python -m", f"{sys.executable} -S -m")
    listing = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    with aws_service("bedrock-agent-runtime") as searches:
        searches.program("Retrieve", hits(hit(text="Trains are booked four weeks early.")))
        env = environment("answers", searches, AWS_LWA_PORT=str(port))
        with child(["sh", "-c", script], cwd=ROOT / "lambdas" / "answers", env=env) as server:
            try:
                url = f"http://127.0.0.1:{port}"
                eventually(lambda: server.poll() is not None or answers(f"{url}/health"))
                answer = urllib3.request(
                    "POST", f"{url}/api/ask", json={"question": "When are trains booked?"}, timeout=60
                ).json()
                headers = {"Accept": "application/json, text/event-stream"}
                tools = urllib3.request("POST", f"{url}/mcp", json=listing, headers=headers, timeout=60).json()
            finally:
                server.terminate()

    assert "Trains are booked four weeks early." in answer["answer"]
    assert {"ask", "search"} <= {tool["name"] for tool in tools["result"]["tools"]}


def test_the_viewer_reads_files_with_nothing_but_the_layers(tmp_path: Path) -> None:
    path = unzipped(tmp_path, built(Target.LOCAL), extra(layers.VIEWER, Target.LOCAL))
    book, written = openpyxl.Workbook(), io.BytesIO()
    book.active.append(["leave", 30])
    book.save(written)
    (tmp_path / "prices.xlsx").write_bytes(written.getvalue())
    samples = ROOT / "samples" / "documents"
    files = [
        tmp_path / "prices.xlsx",
        *(samples / "engineering" / name for name in ("data-retention.docx", "release-process.html")),
    ]
    script = """
import sys
from pathlib import Path
sys.path.append(sys.argv[1])
import lambdas.viewer.handler
from ragstack_common.reading.conversion import convert
from ragstack_common.reading.pdf.document import PdfDocument
for file in map(Path, sys.argv[3:]):
    assert convert(file.read_bytes(), file.suffix[1:])[0].strip(), file
with PdfDocument(Path(sys.argv[2]).read_bytes()) as document:
    assert document.picture(1).data.startswith(b"\\x89PNG")
"""

    finished = subprocess.run(
        [sys.executable, "-S", "-c", script, str(ROOT), samples / "product" / "gateway-installation.pdf", *files],
        capture_output=True,
        check=False,
        env={"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1", "AWS_REGION": "eu-west-1"},
        text=True,
    )

    assert finished.returncode == 0, finished.stderr


def answers(url: str) -> bool:
    try:
        return urllib3.request("GET", url, retries=False).status == 200
    except urllib3.exceptions.HTTPError:
        return False


def test_the_layer_for_aws_has_lambdas_interpreter_and_processor() -> None:
    names = zipfile.ZipFile(built(Target.AWS)).namelist()

    libraries = [name for name in names if name.endswith(".so")]

    assert libraries
    assert all(name.endswith("cpython-314-aarch64-linux-gnu.so") for name in libraries)
    assert all(name.startswith("python/") for name in names)


def test_the_local_layer_makes_a_client_of_every_service_it_keeps(tmp_path: Path) -> None:
    unzipped(tmp_path, built(Target.LOCAL))
    script = f"""
import boto3, aws_lambda_powertools.event_handler.openapi.models, pydantic
assert boto3.__file__.startswith({str(tmp_path)!r}), boto3.__file__
for service in {sorted(AWS_SERVICES)}:
    boto3.client(service, region_name="us-east-1")
"""

    finished = subprocess.run(
        [sys.executable, "-S", "-c", script],
        capture_output=True,
        check=False,
        env={"PYTHONPATH": str(tmp_path / "python")},
        text=True,
    )

    assert finished.returncode == 0, finished.stderr


def test_clients_of_the_layer_have_the_addresses_of_complete_ones(tmp_path: Path) -> None:
    unzipped(tmp_path, built(Target.LOCAL))
    script = f"""
import boto3, json
regions = ["us-east-1", "eu-central-1", "ap-southeast-6", "us-gov-west-1", "cn-north-1"]
found = {{}}
for service in {sorted(AWS_SERVICES)}:
    for region in regions:
        client = boto3.client(service, region_name=region, aws_access_key_id="a", aws_secret_access_key="b")
        found[f"{{service}} {{region}}"] = [client.meta.endpoint_url, client.meta.partition]
print(json.dumps(found))
"""

    reduced, complete = (
        subprocess.run([sys.executable, *options, "-c", script], capture_output=True, check=True, env=env, text=True)
        for options, env in ((["-S"], {"PYTHONPATH": str(tmp_path / "python")}), ([], {}))
    )

    assert json.loads(reduced.stdout) == json.loads(complete.stdout)
    assert not [*(tmp_path / "python" / "botocore" / "data").rglob("*.gz")]


def test_the_layer_keeps_every_service_that_the_product_calls() -> None:
    sources = [*(ROOT / "ragstack_common").rglob("*.py"), *(ROOT / "lambdas").rglob("*.py")]

    called = {
        service for source in sources for service in re.findall(r"client\(\s*\"([a-z0-9-]+)\"", source.read_text())
    }

    assert called <= AWS_SERVICES


def test_a_layer_is_built_again_only_when_its_inputs_change(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    requirements = tmp_path / "requirements.txt"
    requirements.write_text("six==1.17.0\n")
    fingerprint = layers._fingerprint(Wheels.for_target(Target.AWS), layers._pins(requirements))
    layer = tmp_path / f"aws-{fingerprint}.zip"
    layer.write_bytes(b"built before")

    again = dependencies_layer(Target.AWS, build=tmp_path, requirements=requirements)
    requirements.write_text("six==1.16.0\n")

    assert again.read_bytes() == b"built before"
    assert capsys.readouterr().err == ""
    assert layers._fingerprint(Wheels.for_target(Target.AWS), layers._pins(requirements)) != fingerprint


def test_an_extra_layer_leaves_out_shared_packages_by_their_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names are equal however they are written, and other names can begin with them."""
    shared, extra = tmp_path / "shared.txt", tmp_path / "extra.txt"
    shared.write_text("foo-bar==1 \\\n    --hash=sha256:1 \\\n    --hash=sha256:2\nsix==1\n")
    extra.write_text("Foo_Bar[all]==1 --hash=sha256:1\nfoo-bar-more==1\nSIX==2\n")
    monkeypatch.setattr(layers, "REQUIREMENTS", shared)
    monkeypatch.setattr(layers, "EXTRA_REQUIREMENTS", {layers.VIEWER: extra})

    assert layers.extra_pins(layers.VIEWER) == {"foo-bar-more==1"}


def test_all_layers_lock_the_same_version_of_a_package() -> None:
    versions: dict[str, set[str]] = {}
    for file in (REQUIREMENTS, *layers.EXTRA_REQUIREMENTS.values()):
        for pin in layers._pins(file):
            versions.setdefault(layers._package_name(pin), set()).add(pin.split()[0].partition("==")[2])

    assert {name: locked for name, locked in versions.items() if len(locked) > 1} == {}


def test_a_layer_has_only_packages_with_the_locked_hashes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with zipfile.ZipFile(tmp_path / "herons-1-py3-none-any.whl", "w") as wheel:
        wheel.writestr("herons.py", "evil = True")
        wheel.writestr("herons-1.dist-info/METADATA", "Metadata-Version: 2.1\nName: herons\nVersion: 1\n")
        wheel.writestr("herons-1.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr("herons-1.dist-info/RECORD", "")
    requirements = tmp_path / "requirements.txt"
    requirements.write_text(f"herons==1 \\\n    --hash=sha256:{'0' * 64}\n    # via ragstack\n")
    monkeypatch.setenv("UV_NO_INDEX", "1")
    monkeypatch.setenv("UV_FIND_LINKS", str(tmp_path))

    with pytest.raises(LayerError, match="Hash mismatch"):
        dependencies_layer(Target.LOCAL, build=tmp_path / "build", requirements=requirements)


def test_without_the_package_index_one_line_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UV_OFFLINE", "1")
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path.parent / "empty"))

    with pytest.raises(LayerError) as refused:
        dependencies_layer(Target.AWS, build=tmp_path, requirements=REQUIREMENTS)

    message = str(refused.value)
    assert "the network was disabled" in message
    assert "connect, then run python -m infra.layers" in message
    assert "\n" not in message
    assert list(tmp_path.iterdir()) == []


def test_nothing_that_a_function_may_import_is_left_out() -> None:
    graph = grimp.build_graph("ragstack_common", "lambdas")
    left_out = {f"ragstack_common.{name.removesuffix('.py').replace('/', '.')}" for name in NOT_DEPLOYED}

    importers = {
        importer for name in left_out & graph.modules for importer in graph.find_modules_that_directly_import(name)
    }

    assert importers <= left_out
    assert all((SOURCE / name).is_file() for name in NOT_DEPLOYED)
