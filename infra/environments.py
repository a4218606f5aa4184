"""The virtual environments of the Makefile. This module runs before any package is installed.

``prepare`` makes ``.venv`` with uv in it. After the checkout was moved or copied, it corrects the paths in each one.
``install FOLDER FILE [PROJECT]`` installs the locked packages of a file, and then the project in a folder, from where
pip is configured to find packages. Every package must have one of the file's hashes, so no index can replace it.
"""

import ast
import os
import re
import ssl
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
MAIN: Final = ROOT / ".venv"
OTHERS: Final = tuple(ROOT / name for name in (".ministack", ".clients", ".llama-index", ".lowest"))

BUILD: Final = ROOT / "requirements/build.txt"
"""uv, and what builds the project."""

UV_VARIABLES: Final = {
    "find-links": "UV_FIND_LINKS",
    "trusted-host": "UV_INSECURE_HOST",
    "no-index": "UV_NO_INDEX",
    "timeout": "UV_HTTP_TIMEOUT",
    "default-timeout": "UV_HTTP_TIMEOUT",
    "cert": "SSL_CERT_FILE",
    "client-cert": "SSL_CLIENT_CERT",
    "proxy": "ALL_PROXY",
}
"""Options of pip, and the variables with which uv does the same. uv does not read pip's configuration.

Indexes are translated by :func:`_indexes`.
"""

PATHS: Final = (
    "bin/*",
    "pyvenv.cfg",
    "lib/python*/site-packages/__editable__*",
    "lib/python*/site-packages/*/direct_url.json",
)
"""Files of an environment that name its folder or the checkout."""

_MEGABYTES: Final = {"KiB": 1 / 1024, "MiB": 1.0, "GiB": 1024.0}
_DOWNLOADING: Final = re.compile(r"Downloading (\S+) \(([\d.]+)(KiB|MiB|GiB)\)")
_DOWNLOADED: Final = re.compile(r" *Downloaded (\S+)")
_INSTALLED: Final = re.compile(r"Installed (\d+) packages?")
_CHANGED: Final = re.compile(r" [-+~] ")


def prepare() -> None:
    """Make ``.venv`` with uv, or correct its paths if it was made in another folder."""
    python, description = MAIN / "bin" / "python", MAIN / "pyvenv.cfg"
    made = re.search(r"(?m)^command = .* -m venv (.+)/\.venv$", description.read_text() if description.exists() else "")
    if made and made[1] != str(ROOT):
        print(f"This checkout was in {made[1]}: correcting the paths in its environments", flush=True)
        for environment in (MAIN, *OTHERS):
            relocate(environment, made[1], str(ROOT))
    if not (MAIN / "stamps" / "environment").exists():  # also after an interrupted installation
        print("Making .venv, with uv for the installation of packages ...", flush=True)
        subprocess.run([sys.executable, "-m", "venv", MAIN], check=True)
    pip = ["-m", "pip", "install", "--quiet", "--quiet", "--no-compile", "--disable-pip-version-check"]
    subprocess.run([python, *pip, "--require-hashes", "--requirement", BUILD], check=True)


def relocate(environment: Path, before: str, now: str) -> None:
    """Replace the path of a folder in the files of an environment that name it."""
    path = re.compile(re.escape(before.encode()) + rb"(?![\w.-])")
    for file in (found for pattern in PATHS for found in environment.glob(pattern)):
        if file.is_symlink() or not file.is_file() or b"\0" in (content := file.read_bytes()):
            continue
        changed = path.sub(lambda _: now.encode(), content)
        if changed != content:
            # A new file, because the old one may be a link to one in uv's cache.
            replacement = file.with_name(f"{file.name}.new")
            replacement.write_bytes(changed)
            replacement.chmod(file.stat().st_mode)
            replacement.replace(file)


def install(environment: Path, requirements: Path, project: Path | None = None) -> None:
    """Install the packages of a file with hashes into an environment, made if it is missing, then the project."""
    uv, python = MAIN / "bin" / "uv", environment / "bin" / "python"
    variables = uv_settings(pip_settings(), os.environ)
    if not python.exists():
        subprocess.run([uv, "venv", "--quiet", "--python", MAIN / "bin" / "python", environment], check=True)
    installing: list[str | Path] = [uv, "pip", "install", "--no-progress", "--python", python]
    hashed = ("--require-hashes", "--build-constraint", BUILD, "--requirement", requirements)
    code = _run(environment.name, [*installing, *hashed], variables)
    if project is not None and not code:
        # Neither its dependencies nor what builds it come from an index: both were installed with hashes.
        editable = ("--quiet", "--no-deps", "--no-build-isolation", "--editable", project)
        code = _run(environment.name, [*installing, *editable], variables)
    raise SystemExit(code)


def uv_settings(pip: Mapping[str, str], environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables with which uv finds packages where pip does; the user's own variables for uv win."""
    chosen = {UV_VARIABLES[name]: " ".join(value.split()) for name, value in pip.items() if name in UV_VARIABLES}
    if "UV_FIND_LINKS" in chosen:
        chosen["UV_FIND_LINKS"] = chosen["UV_FIND_LINKS"].replace(" ", ",")
    if not {"UV_DEFAULT_INDEX", "UV_INDEX", "UV_INDEX_URL", "UV_EXTRA_INDEX_URL"} & environment.keys():
        chosen |= _indexes(pip)
    paths = ssl.get_default_verify_paths()
    if sys.platform == "darwin" or paths.cafile or paths.capath:
        chosen["UV_SYSTEM_CERTS"] = "true"  # as pip does
    return {**chosen, **environment}


def _indexes(pip: Mapping[str, str]) -> dict[str, str]:
    """Return pip's indexes for uv, the main one first: uv takes a package from the first index that has it.

    An index that was added for other packages may have other versions of those that are locked. Without a main index
    of the user's own it is not needed: the public one has everything that is locked.
    """
    if "index-url" not in pip:
        return {}
    *first, last = [*pip["index-url"].split(), *pip.get("extra-index-url", "").split()]
    # uv searches the default index last.
    return {"UV_DEFAULT_INDEX": last, **({"UV_INDEX": " ".join(first)} if first else {})}


def pip_settings() -> dict[str, str]:
    """Read pip's configuration: its files, then those for the command install, then the variables."""
    command: list[str | Path] = [MAIN / "bin" / "python", "-m", "pip", "config", "list"]
    listed = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    lines = re.findall(r"(?m)^(global|install|:env:)\.([\w-]+)=(.+)$", listed)
    found: dict[str, str] = {}
    for section in ("global", "install", ":env:"):
        found |= {name: str(ast.literal_eval(value)) for place, name, value in lines if place == section}
    return found


def _run(name: str, command: list[str | Path], variables: Mapping[str, str]) -> int:
    start = time.monotonic()
    sizes: dict[str, float] = {}
    left: set[str] = set()
    said = []
    with subprocess.Popen(command, env=variables, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if found := _DOWNLOADING.match(line):
                sizes[found[1]] = float(found[2]) * _MEGABYTES[found[3]]
                left.add(found[1])
            elif found := _DOWNLOADED.match(line):
                left.discard(found[1])
                done = sum(size for package, size in sizes.items() if package not in left)
                print(f"  {name}: {done:.0f} of {sum(sizes.values()):.0f} MB, {found[1]}", flush=True)
            elif found := _INSTALLED.match(line):
                print(f"  {name}: {found[1]} packages in {time.monotonic() - start:.0f} s", flush=True)
            elif not _CHANGED.match(line):
                said.append(line)
    if process.returncode:
        sys.stderr.writelines(said)
    return process.returncode


if __name__ == "__main__":
    if sys.argv[1] == "prepare":
        prepare()
    else:
        install(ROOT / sys.argv[2], *(ROOT / each for each in sys.argv[3:5]))
