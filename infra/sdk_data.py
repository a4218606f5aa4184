"""The data files of botocore, reduced to what the functions read.

botocore parses the addresses of every AWS service whenever a process makes its first client, and a service's whole
description, with its documentation, for each client: 18 and 4 to 8 milliseconds of a cold start. For each connection,
it loads the certificates of every public authority: 17 to 28 milliseconds (benchmarks/cold_start.py).
"""

import gzip
import json
import shutil
import ssl
from collections.abc import Collection
from pathlib import Path
from typing import Any, Final

AWS_AUTHORITIES: Final = frozenset(
    {
        "Amazon Root CA 1",
        "Amazon Root CA 2",
        "Amazon Root CA 3",
        "Amazon Root CA 4",
        "Starfield Services Root Certificate Authority - G2",
    }
)
"""The common names of the authorities behind the certificates of AWS's services.

Source: Amazon Trust Services, repository, recommendation for custom trust stores.
"""


def reduce_data(data: Path, services: Collection[str]) -> None:
    """Keep some services in the folder ``botocore/data``, without documentation and uncompressed.

    The descriptions of waiters and paginators stay as they are.
    """
    prefixes = set()
    for folder in [each for each in data.iterdir() if each.is_dir()]:
        if folder.name not in services:
            shutil.rmtree(folder)
            continue
        for compressed in folder.rglob("*.json.gz"):
            description = _undocumented(json.loads(gzip.decompress(compressed.read_bytes())))
            for parameter in description.get("clientContextParams", {}).values():
                parameter["documentation"] = ""  # a client reads it
            _write(compressed.with_suffix(""), description)
            compressed.unlink()
            if compressed.name.startswith("service-2."):
                prefixes.add(description["metadata"]["endpointPrefix"])
    endpoints = json.loads((data / "endpoints.json").read_bytes())
    for partition in endpoints["partitions"]:
        known = partition["services"]
        partition["services"] = {name: known[name] for name in known if name in prefixes}
    _write(data / "endpoints.json", endpoints)


def reduce_certificates(file: Path) -> None:
    """Keep the authorities of AWS's services in a file of certificates, botocore's ``cacert.pem``."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(file)
    described = zip(context.get_ca_certs(), context.get_ca_certs(binary_form=True), strict=True)
    kept = [ssl.DER_cert_to_PEM_cert(certificate) for names, certificate in described if _is_of_aws(names)]
    _replace(file, "".join(kept))


def _is_of_aws(names: Any) -> bool:
    return any(("commonName", name) in part for part in names["subject"] for name in AWS_AUTHORITIES)


def _undocumented(part: Any) -> Any:
    """Leave out the texts called "documentation"; a member of a shape can have that name, too."""
    if isinstance(part, dict):
        return {
            name: _undocumented(each)
            for name, each in part.items()
            if name != "documentation" or not isinstance(each, str)
        }
    return [_undocumented(each) for each in part] if isinstance(part, list) else part


def _write(file: Path, content: Any) -> None:
    _replace(file, json.dumps(content, separators=(",", ":"), ensure_ascii=False))


def _replace(file: Path, text: str) -> None:
    # A new file: the installed one may be a link to the installer's cache, and to all environments.
    file.unlink(missing_ok=True)
    file.write_text(text, encoding="utf-8")
