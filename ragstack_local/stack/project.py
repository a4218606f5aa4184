"""Where the project's parts are in its folder."""

import sys
from dataclasses import dataclass
from pathlib import Path

from ragstack_local.stack.errors import StackError


@dataclass(frozen=True)
class Project:
    """A checkout of the project, or the installed package without one.

    Attributes:
        root: The folder that holds cdk.json, if there is a checkout.
        data: Everything that the local stack writes.
    """

    root: Path
    data: Path

    @classmethod
    def find(cls, data: str | None = None) -> "Project":
        """Find the checkout that this package is installed from.

        Args:
            data: The folder to write to. Default: .ragstack in the checkout; without one, in the current folder.
        """
        root = Path(__file__).resolve().parents[2]
        project = cls(root, root / ".ragstack")
        if data:
            return cls(root, Path(data).absolute())
        return project if project.is_checkout else cls(root, Path(".ragstack").absolute())

    @property
    def is_checkout(self) -> bool:
        """Whether the CDK app is here, which the installed package does not bring."""
        return (self.root / "cdk.json").is_file()

    def require_checkout(self) -> None:
        """Check that the local stack can be started from here.

        Raises:
            StackError: The package was installed without its checkout.
        """
        if not self.is_checkout:
            raise StackError(
                "`ragstack up` and `ragstack demo` deploy the CDK app of the project's repository, which is not"
                " installed with the package: clone the repository and run `make demo` or `make up` there."
                " `ragstack bedrock` runs the local Bedrock without it."
            )

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
