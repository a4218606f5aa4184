"""The stacks of the local stack as the CDK synthesizes them, once for all data folders of a checkout.

Ports and the ids of knowledge bases differ between data folders and change nothing else in the templates. So stacks are
synthesized with others in their place, and get those of the stack when they are deployed.
"""

import hashlib
import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from local_bedrock.options import LOCAL
from ragstack_local.connection.connection import Project

SOURCES: Final = (
    "app.py",
    "cdk.json",
    "cdk.context.json",
    "requirements/answers.txt",
    "requirements/layer.txt",
    "requirements/milvus.txt",
    "requirements/tracing.txt",
    "requirements/viewer.txt",
    "package-lock.json",
    "infra",
    "lambdas",
    "ragstack_common",
)
"""Inputs of the app and its functions, below the checkout."""

PACKAGES: Final = ("aws-cdk-lib", "cdk-nag", "constructs", "jsii")

ASSEMBLIES: Final = Path("build", "assemblies")
"""Folder of the assemblies below the checkout, each named by the digest of its inputs."""

MAX_ASSEMBLIES: Final = 16
"""Those of the kinds of callers and settings between which starts, and tests, alternate."""

LATER: Final = {
    "aws_endpoint": f"http://{LOCAL}:60001",
    "bedrock_endpoint": f"http://{LOCAL}:60002",
    "answers_endpoint": f"http://{LOCAL}:60003",
    "oidc_issuer": f"http://{LOCAL}:60004",
    "knowledge_base_id": "KB4LATER00",
    "data_source_id": "DS4LATER00",
}
"""What stands for context values in an assembly."""

_MANIFEST: Final = ".assets.json"
"""End of the name of each stack's list of assets. Source: @aws-cdk/cloud-assembly-schema."""

_DIGEST_CHARACTERS: Final = 32
"""Source: aws-cdk-lib, aws-apigateway/lib/deployment.ts, addToLogicalId."""


@dataclass(frozen=True)
class Inputs:
    """What templates and packages of functions depend on.

    Attributes:
        context: The context values, by name.
        sources: Digest of everything else.
    """

    context: Mapping[str, str]
    sources: str

    @classmethod
    def read(cls, project: Project, context: Mapping[str, str]) -> "Inputs":
        """Read those that the checkout has now."""
        digest = hashlib.sha256()
        packages = {name: version(name) for name in PACKAGES}
        digest.update(json.dumps([str(project.root), sys.version, packages]).encode())
        for file in _inputs(project, context):
            digest.update(f"\0{file}\0".encode())
            digest.update(hashlib.sha256(file.read_bytes()).digest())
        return cls(context, digest.hexdigest())

    @property
    def digest(self) -> str:
        """A digest of all of it."""
        return hashlib.sha256(json.dumps([self.sources, sorted(self.context.items())]).encode()).hexdigest()

    @property
    def bound_later(self) -> Mapping[str, str]:
        """The context values that an assembly does not have, by what stands for them there."""
        local = f"http://{LOCAL}:"
        found = {later: self.context[name] for name, later in LATER.items() if name in self.context}
        # An issuer elsewhere is looked up during the synthesis.
        return {later: value for later, value in found.items() if value.startswith(local) or ":" not in later}

    @property
    def for_synthesis(self) -> "Inputs":
        """The same inputs for all data folders."""
        later = self.bound_later
        return Inputs(
            {name: value if LATER.get(name) not in later else LATER[name] for name, value in self.context.items()},
            self.sources,
        )


@dataclass(frozen=True)
class Assembly:
    """The synthesized stacks in a folder that is named by the digest of their inputs."""

    path: Path

    @classmethod
    def find(cls, project: Project, inputs: Inputs) -> "Assembly":
        """Return the assembly of some inputs, which may not exist yet."""
        return cls(project.root / ASSEMBLIES / inputs.for_synthesis.digest)

    @property
    def is_synthesized(self) -> bool:
        """Whether the folder has the stacks, and their assets, which are not copied into it, still exist."""
        try:
            found = {file.name: json.loads(file.read_bytes()) for file in self.path.glob("*.json")}
        except (OSError, ValueError):  # another stack removes it, or a power cut has emptied a file
            return False
        manifests = [content for name, content in found.items() if name.endswith(_MANIFEST)]
        paths = (self.path / path for each in manifests for path in _assets(each).values())
        return "manifest.json" in found and all(path.exists() for path in paths)

    @property
    def object_keys(self) -> frozenset[str]:
        """The keys under which a deployment uploads the assets."""
        assets = (asset for each in self._manifests for asset in each["files"].values())
        return frozenset(place["objectKey"] for asset in assets for place in asset["destinations"].values())

    @property
    def _manifests(self) -> Iterator[Mapping[str, Any]]:
        return (json.loads(file.read_text()) for file in self.path.glob(f"*{_MANIFEST}"))

    @contextmanager
    def synthesized(self) -> Iterator[Path]:
        """Yield a folder that becomes the assembly if the context ends without an error."""
        folder = self.path.parent
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder, prefix=".") as temporary:
            new = Path(temporary, "new")
            yield new
            if not self.is_synthesized:  # or another stack was faster, and reads its own now
                self.remove()
                try:
                    new.rename(self.path)
                except OSError:
                    if not self.is_synthesized:
                        raise
        # Parts that a kill has left are old, too.
        for old in sorted(folder.glob("*/"), key=_changed_at, reverse=True)[MAX_ASSEMBLIES:]:
            shutil.rmtree(old, ignore_errors=True)

    def bind(self, values: Mapping[str, str], folder: Path) -> None:
        """Write a copy into a folder, with values in place of those that stand for them.

        The name of a template among the assets is the digest of its content, so it changes too.
        """
        os.utime(self.path)  # among the last ones that were used
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self.path, folder)
        names: dict[str, str] = {}
        for file in folder.glob(f"*{_MANIFEST}"):
            for name, path in _assets(json.loads(file.read_text())).items():
                if path.endswith(".template.json"):
                    bound = _replaced(folder / path, values)
                    bound = _replaced(folder / path, _deployments(bound))
                    names[name] = hashlib.sha256(bound).hexdigest()
        for file in (*folder.glob(f"*{_MANIFEST}"), folder / "manifest.json"):
            _replaced(file, names)

    def remove(self) -> None:
        """Remove it, if it exists."""
        shutil.rmtree(self.path, ignore_errors=True)


def _changed_at(folder: Path) -> float:
    try:
        return folder.stat().st_mtime
    except FileNotFoundError:  # another stack has removed it
        return 0.0


def _assets(manifest: Mapping[str, Any]) -> dict[str, str]:
    """Return the path of each asset by its name. Source: @aws-cdk/cloud-assembly-schema, FileAsset."""
    return {name: asset["source"]["path"] for name, asset in manifest["files"].items()}


def _deployments(template: bytes) -> dict[str, str]:
    """Return new logical ids for the deployments of APIs, which end in a digest of what is deployed.

    An API has its changes only if they are in a new deployment. Source: AWS::ApiGateway::Deployment.
    """
    digest = hashlib.sha256(template).hexdigest()[:_DIGEST_CHARACTERS]
    resources = json.loads(template).get("Resources", {})
    found = (name for name, each in resources.items() if each["Type"] == "AWS::ApiGateway::Deployment")
    return {name: name[:-_DIGEST_CHARACTERS] + digest for name in found}


def _replaced(file: Path, values: Mapping[str, str]) -> bytes:
    """Replace words in a file, and return its new content."""
    text = file.read_text()
    if values:
        text = re.sub("|".join(map(re.escape, values)), lambda found: values[found[0]], text)
        file.write_text(text)
    return text.encode()


def _inputs(project: Project, context: Mapping[str, str]) -> Iterator[Path]:
    # The command line reads context from it too. Source: CDK developer guide, "Context values and the CDK".
    sources = [Path("~/.cdk.json").expanduser(), *(project.root / name for name in SOURCES)]
    # The deployer's own layers, and the access file.
    sources += [project.root / value for name, value in context.items() if name.endswith("_layer") or name == "access"]
    for source in sources:
        if source.is_dir():
            yield from sorted(f for f in source.rglob("*") if f.is_file() and "__pycache__" not in f.parts)
        elif source.is_file():
            yield source
