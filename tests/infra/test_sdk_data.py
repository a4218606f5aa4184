"""The data files of botocore, reduced to what the functions read."""

import gzip
import json
from pathlib import Path
from typing import Any

from infra.sdk_data import reduce_data


def write(file: Path, content: Any) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(content).encode()
    file.write_bytes(gzip.compress(text) if file.suffix == ".gz" else text)


def test_services_that_are_not_kept_lose_their_descriptions_and_addresses(tmp_path: Path) -> None:
    kept = {"metadata": {"endpointPrefix": "monitoring"}}
    write(tmp_path / "cloudwatch" / "2010-08-01" / "service-2.json.gz", kept)
    write(tmp_path / "iot" / "2015-05-28" / "service-2.json.gz", {"metadata": {"endpointPrefix": "iot"}})
    services: dict[str, Any] = {"iot": {"endpoints": {"eu-west-1": {}}}, "monitoring": {"endpoints": {"us-east-1": {}}}}
    write(tmp_path / "endpoints.json", {"partitions": [{"partition": "aws", "services": services}], "version": 3})

    reduce_data(tmp_path, {"cloudwatch"})

    left = json.loads((tmp_path / "endpoints.json").read_text())
    expected = {"partition": "aws", "services": {"monitoring": services["monitoring"]}}
    assert left == {"partitions": [expected], "version": 3}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cloudwatch", "endpoints.json"]


def test_a_member_called_documentation_is_no_documentation(tmp_path: Path) -> None:
    members = {"documentation": {"shape": "Text", "documentation": "<p>What it is.</p>"}}
    shapes = {"Page": {"type": "structure", "members": members, "documentation": "<p>A page.</p>"}}
    description = {"metadata": {"endpointPrefix": "wiki"}, "shapes": shapes, "documentation": "<p>Pages.</p>"}
    write(tmp_path / "wiki" / "2026-01-01" / "service-2.json.gz", description)
    write(tmp_path / "endpoints.json", {"partitions": []})

    reduce_data(tmp_path, {"wiki"})

    [left] = tmp_path.glob("wiki/*/*")
    assert left.name == "service-2.json"
    assert json.loads(left.read_text()) == {
        "metadata": {"endpointPrefix": "wiki"},
        "shapes": {"Page": {"type": "structure", "members": {"documentation": {"shape": "Text"}}}},
    }
