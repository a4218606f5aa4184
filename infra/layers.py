"""Build the layers of the functions, without docker.

``python -m infra.layers`` builds the layer of third-party packages that every function shares from the wheels that
``requirements/layer.txt`` pins with their hashes: for AWS the ones of Lambda's interpreter and processor, for the local
stack those of this machine, where functions run as local processes. Packages that one function alone needs are an extra
layer, so that they cost the others no cold start. The last layer is ``ragstack_common`` itself: a change to it does not
upload the packages again.
"""

import argparse
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from infra.bytecode import compile_folder, compiled_copy, compiles
from infra.environments import pip_settings, uv_settings
from infra.sdk_data import reduce_certificates, reduce_data
from infra.target import Target

ROOT: Final = Path(__file__).resolve().parents[1]
REQUIREMENTS: Final = ROOT / "requirements/layer.txt"
TRACING: Final = "tracing"
VIEWER: Final = "viewer"
EXTRA_REQUIREMENTS: Final[Mapping[str, Path]] = {
    name: ROOT / f"requirements/{name}.txt" for name in ("answers", "milvus", TRACING, VIEWER)
}
"""What each extra layer adds to the shared one, by name; these files pin the shared packages too."""

ACCESS_FILE: Final = "access.json"

SOURCE: Final = ROOT / "ragstack_common"
BUILD: Final = ROOT / "build" / "layers"

LAMBDA_PYTHON: Final = (3, 14)
LAMBDA_PLATFORM: Final = "aarch64-manylinux_2_34"
"""Lambda's Amazon Linux 2023 has glibc 2.34, so wheels for any older one run on it."""

AWS_SERVICES: Final = frozenset(
    {
        "bedrock-agent",
        "bedrock-agent-runtime",
        "bedrock-runtime",
        "cloudwatch",
        "dynamodb",
        "events",
        "kms",
        "lambda",
        "s3",
        "s3vectors",
        "secretsmanager",
        "sns",
        "sqs",
        "ssm",
        "sts",
        "textract",
    }
)
"""Services whose API descriptions and addresses stay in botocore; those of all others are most of its size."""

NOT_DEPLOYED: Final = (
    "knowledge_base.py",
    "multislice_retriever.py",
    "py.typed",
    "reranking.py",
)
"""Parts of ``ragstack_common`` that no function imports: interfaces for programs that use it as a library."""

MAX_UNZIPPED_MB: Final = 250
"""Source: Lambda quotas, deployment package size, unzipped, all layers together."""

RECIPE: Final = "5"
"""Goes up when the way of building changes, so that layers are built again."""


_NAME: Final = re.compile(r"[A-Za-z0-9][\w.-]*", re.ASCII)


class LayerError(RuntimeError):
    """A layer cannot be built; the message is one line that says why."""


@dataclass(frozen=True)
class Wheels:
    """Which wheels fit a target.

    Attributes:
        python: Version of the interpreter that will run the functions.
        platform: The name that uv has for it; None for the machine this runs on.
    """

    python: tuple[int, int]
    platform: str | None

    @classmethod
    def for_target(cls, target: Target) -> "Wheels":
        """Lambda's interpreter and processor, or this one's."""
        if target is Target.AWS:
            return cls(LAMBDA_PYTHON, LAMBDA_PLATFORM)
        return cls(sys.version_info[:2], None)

    def __str__(self) -> str:
        return f"python{'.'.join(map(str, self.python))} {self.platform or platform.machine()}"


def dependencies_layer(target: Target, *, build: Path = BUILD, requirements: Path = REQUIREMENTS) -> Path:
    """The zip file of third-party packages for *target*, built when its inputs have changed.

    Raises:
        LayerError: The wheels cannot be had, or exceed what Lambda takes.
    """
    return _layer(str(target), target, _pins(requirements), build)


def extra_layer(name: str, target: Target, *, build: Path = BUILD) -> Path:
    """The zip file of the packages that an extra layer adds to those of :func:`dependencies_layer`.

    Several names, joined by hyphens, are one layer: a function has at most five.

    Raises:
        LayerError: As for that layer.
    """
    return _layer(f"{name}-{target}", target, extra_pins(name), build)


def extra_pins(name: str) -> frozenset[str]:
    """Return the packages, with their versions and hashes, of an extra layer, without those of the shared layer."""
    pins = frozenset[str]().union(*(_pins(EXTRA_REQUIREMENTS[each]) for each in name.split("-")))
    left_out = {*map(_package_name, _pins(REQUIREMENTS))}
    return frozenset(pin for pin in pins if _package_name(pin) not in left_out)


def _package_name(pin: str) -> str:
    """Return the name of the package that a requirement pins.

    Source: Python Packaging User Guide, name normalization.
    """
    name = _NAME.match(pin)
    assert name is not None, pin
    return re.sub(r"[-_.]+", "-", name[0]).lower()


def _pins(requirements: Path) -> frozenset[str]:
    """Read the packages with their versions and hashes, each in one line; the other lines say what requires them."""
    joined = requirements.read_text().replace("\\\n", "")
    return frozenset(" ".join(line.split()) for line in joined.splitlines() if line[:1].isalnum())


def _layer(name: str, target: Target, pins: frozenset[str], build: Path) -> Path:
    wheels = Wheels.for_target(target)
    layer = build / f"{name}-{_fingerprint(wheels, pins)}.zip"
    if layer.is_file():
        return layer
    _say(f"Building the layer {name} of third-party packages ({wheels}) ...")
    build.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=build, prefix=f".{name}-") as temporary:
        packages = Path(temporary, "python")
        _install(wheels, pins, packages)
        _strip(packages)
        compile_folder(packages, python=wheels.python)
        unzipped_mb = sum(file.stat().st_size for file in _files(packages)) / 1e6
        if unzipped_mb > MAX_UNZIPPED_MB:
            raise LayerError(f"the layer {name} has {unzipped_mb:.0f} MB, Lambda takes {MAX_UNZIPPED_MB}")
        zipped = Path(temporary, "layer.zip")
        _zip(packages, zipped)
        zipped.replace(layer)
    for outdated in set(build.glob(f"{name}-*.zip")) - {layer}:
        outdated.unlink(missing_ok=True)
    return layer


def common_layer(target: Target, source: Path = SOURCE) -> Path:
    """Return a folder with ``python/ragstack_common``: a copy of the sources that functions import, with bytecode."""
    python = Wheels.for_target(target).python
    return compiled_copy(source, python=python, inside=f"python/{source.name}", left_out=NOT_DEPLOYED)


def function_code(folder: str, target: Target, access: Path | None = None) -> Path:
    """Return a copy of a function's own code with bytecode, and with the access file if it reads one."""
    source = ROOT / "lambdas"
    content = None if access is None else access.read_bytes()
    # In each folder, so that all functions share one copy.
    folders = [] if content is None else [each.parent.name for each in source.glob("*/__init__.py")]
    added = {f"{each}/{ACCESS_FILE}": content for each in folders if content is not None}
    return compiled_copy(source, python=Wheels.for_target(target).python, added=added) / folder


def local_access_file(access: Path) -> Path:
    """Return a copy of the access file that the processes of the local stack read, and no synthesis deletes."""
    content = access.read_bytes()
    copy = BUILD.parent / "access" / f"{hashlib.sha256(content).hexdigest()[:16]}.json"
    if not copy.is_file():
        copy.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=copy.parent, prefix=".", delete=False) as temporary:
            temporary.write(content)
        Path(temporary.name).replace(copy)
    return copy


def _fingerprint(wheels: Wheels, pins: frozenset[str]) -> str:
    here = "" if wheels.platform else f"{sys.implementation.cache_tag} {sysconfig.get_platform()}"
    inputs = (RECIPE, sorted(pins), wheels, here, compiles(wheels.python), sorted(AWS_SERVICES))
    return hashlib.sha256(repr(inputs).encode()).hexdigest()[:16]


def _install(wheels: Wheels, pins: frozenset[str], packages: Path) -> None:
    command: list[str | Path] = [Path(sys.executable).with_name("uv"), "pip", "install", "--quiet", "--no-config"]
    command += ["--no-deps", "--only-binary", ":all:", "--python", sys.executable, "--target", packages]
    if wheels.platform:
        command += ["--python-version", ".".join(map(str, wheels.python)), "--python-platform", wheels.platform]
    command += ["--require-hashes", "--requirement", "-"]
    variables = uv_settings(pip_settings(), os.environ)
    finished = subprocess.run(  # noqa: S603
        command, capture_output=True, text=True, check=False, env=variables, input="\n".join(sorted(pins))
    )
    if finished.returncode:
        raise LayerError(
            f"the layer for {wheels} cannot be built: {' '.join(finished.stderr.split())}"
            " (it needs the package index: connect, then run python -m infra.layers)"
        )


def _strip(packages: Path) -> None:
    """Remove what no function reads at run time."""
    shutil.rmtree(packages / "bin", ignore_errors=True)
    (packages / ".lock").unlink(missing_ok=True)  # of uv
    for name in ("__pycache__", "tests"):
        for folder in [*packages.rglob(name)]:
            shutil.rmtree(folder, ignore_errors=True)  # it may be inside another one
    for stub in packages.rglob("*.pyi"):
        stub.unlink()
    for botocore in packages.glob("botocore"):
        reduce_data(botocore / "data", AWS_SERVICES)
        reduce_certificates(botocore / "cacert.pem")


def _zip(packages: Path, destination: Path) -> None:
    """Zip *packages* so that equal contents give equal bytes."""
    with zipfile.ZipFile(destination, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in _files(packages):
            name = file.relative_to(packages.parent).as_posix()
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, file.read_bytes())


def _files(folder: Path) -> Iterator[Path]:
    yield from sorted(path for path in folder.rglob("*") if path.is_file())


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def main(arguments: list[str] | None = None) -> int:
    """Build the layers of one target or of all; 1 when one cannot be built.

    The local stack runs the function `answers` itself, with the packages of this environment, and builds other extra
    layers when they are deployed.
    """
    parser = argparse.ArgumentParser(prog="python -m infra.layers", description=main.__doc__)
    parser.add_argument("--target", choices=[*Target, "all"], default="all", help="default: all")
    parser.add_argument("--extra", choices=[*EXTRA_REQUIREMENTS], action="append", help="default: all for AWS")
    options = parser.parse_args(arguments)
    try:
        for target in Target if options.target == "all" else [Target(options.target)]:
            _say(f"{dependencies_layer(target).relative_to(ROOT)} is ready")
            for name in options.extra or (EXTRA_REQUIREMENTS if target is Target.AWS else ()):
                _say(f"{extra_layer(name, target).relative_to(ROOT)} is ready")
    except LayerError as error:
        _say(str(error))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
