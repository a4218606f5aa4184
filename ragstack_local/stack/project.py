"""Where the project's parts lie in its folder."""

import sys
from dataclasses import dataclass
from pathlib import Path

from ragstack_local.stack.errors import StackError


@dataclass(frozen=True)
class Project:
    """A checkout of the project.

    Attributes:
        root: The folder that holds cdk.json.
        data: Everything that the local stack writes.
    """

    root: Path
    data: Path

    @classmethod
    def find(cls, data: str | None = None) -> "Project":
        """Find the checkout that this package is installed from.

        Args:
            data: What the local stack writes goes there, instead of into the checkout's folder .ragstack.

        Raises:
            StackError: The package was installed without its checkout.
        """
        root = Path(__file__).resolve().parents[2]
        if not (root / "cdk.json").is_file():
            raise StackError("The local stack needs the project's folder: clone it and run `make setup` there")
        return cls(root, Path(data).absolute() if data else root / ".ragstack")

    @property
    def running(self) -> Path:
        """Tells other commands where the running stack is."""
        return self.data / "running.json"

    @property
    def ministack(self) -> Path:
        """MiniStack, in a virtual environment of its own."""
        return self._installed(self.root / ".ministack" / "bin" / "ministack")

    @property
    def cdk(self) -> Path:
        """The CDK command line."""
        return self._installed(self.root / "node_modules" / ".bin" / "cdk")

    @property
    def tools(self) -> Path:
        """The folder of this interpreter, where node is too."""
        return Path(sys.executable).parent

    def _installed(self, path: Path) -> Path:
        if not path.exists():
            raise StackError(f"{path.relative_to(self.root)} is missing: run `make setup`")
        return path
