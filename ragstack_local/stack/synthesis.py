"""Whether the stacks that were deployed last can be deployed again as they were synthesized then.

To synthesize them is most of a start. It is left out where everything that it reads is as it was, and done again after
a deployment that did not succeed, whatever the reason.
"""

import hashlib
import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Final

from ragstack_local.stack.project import Project

SOURCES: Final = (
    "app.py",
    "cdk.json",
    "cdk.context.json",
    "requirements-layer.txt",
    "package-lock.json",
    "infra",
    "lambdas",
    "ragstack_common",
)
"""What the app and its functions are made of, below the checkout."""
SETTINGS_OF_THE_USER: Final = Path("~/.cdk.json")
"""Context that the command line takes from there. Source: CDK developer guide, "Context values and the CDK"."""
PACKAGES: Final = ("aws-cdk-lib", "cdk-nag", "constructs", "jsii")
_LAYER: Final = "dependencies_layer"


@dataclass
class Assembly:
    """The stacks, synthesized into a folder.

    Attributes:
        path: The folder.
        inputs: A digest of all that they are made of.
        is_current: Whether the folder has what these inputs make, and has been deployed.
    """

    path: Path
    inputs: str
    is_current: bool = field(init=False)

    def __post_init__(self) -> None:
        noted = self._note.read_text() if self._note.is_file() else ""
        self.is_current = noted == self.inputs and (self.path / "manifest.json").is_file()

    @classmethod
    def of(cls, project: Project, path: Path, context: Mapping[str, str]) -> "Assembly":
        """Look at a folder.

        Args:
            project: The checkout.
            path: The folder, which need not exist.
            context: What the app is told.
        """
        return cls(path, _digest(project, context))

    @contextmanager
    def deployed(self) -> Iterator[None]:
        """Deploy it within the context; only where that succeeds is it current from then on."""
        self._note.unlink(missing_ok=True)
        yield
        self._note.write_text(self.inputs)

    @property
    def _note(self) -> Path:
        return self.path.with_name(f"{self.path.name}.inputs")


def _digest(project: Project, context: Mapping[str, str]) -> str:
    digest = hashlib.sha256()
    packages = {name: version(name) for name in PACKAGES}
    digest.update(json.dumps([str(project.root), sys.version, packages, sorted(context.items())]).encode())
    for file in _files(project, context):
        digest.update(f"\0{file}\0".encode())
        digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()


def _files(project: Project, context: Mapping[str, str]) -> Iterator[Path]:
    yield from (path for path in [SETTINGS_OF_THE_USER.expanduser()] if path.is_file())
    if layer := context.get(_LAYER):
        yield from (path for path in [project.root / layer] if path.is_file())
    for name in SOURCES:
        source = project.root / name
        if source.is_file():
            yield source
        found = source.rglob("*") if source.is_dir() else []
        yield from sorted(file for file in found if file.is_file() and "__pycache__" not in file.parts)
