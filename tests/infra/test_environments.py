"""The environments of the Makefile: where packages come from, a checkout that moved, and what `make clean` keeps."""

import hashlib
import os
import re
import subprocess
import sys
import venv
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from infra import environments
from infra.environments import relocate, uv_settings

ROOT = Path(__file__).parents[2]


def make(folder: Path, target: str, typed: str = "") -> "subprocess.CompletedProcess[str]":
    command: list[str | Path] = ["make", "--silent", "--file", ROOT / "Makefile", target]
    return subprocess.run(command, cwd=folder, input=typed, capture_output=True, text=True, check=False, timeout=60)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    for name in (".ragstack/local", "build", ".venv/bin"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / ".ragstack/local/leave.md").touch()
    return tmp_path


def test_clean_keeps_documents_and_index(checkout: Path) -> None:
    done = make(checkout, "clean")

    assert done.returncode == 0, done.stderr
    assert [path.name for path in checkout.iterdir()] == [".ragstack"]
    assert (checkout / ".ragstack/local/leave.md").exists()


@pytest.mark.parametrize(("typed", "is_kept"), [("y\n", False), ("n\n", True), ("\n", True), ("", True)])
def test_data_is_deleted_only_after_a_yes(checkout: Path, typed: str, is_kept: bool) -> None:
    done = make(checkout, "delete-data", typed)

    assert (checkout / ".ragstack").exists() == is_kept
    assert ("Nothing was deleted" in done.stdout) == is_kept


def test_a_moved_environment_runs_its_programs_again(tmp_path: Path) -> None:
    before, now = tmp_path / "before", tmp_path / "now"
    venv.create(before / ".venv", symlinks=True)
    (packages,) = before.glob(".venv/lib/python*/site-packages")
    program = before / ".venv/bin/greet"
    program.write_text(f"#!{before}/.venv/bin/python\nimport greeting\n")
    program.chmod(0o755)
    (packages / "__editable__.greeting.pth").write_text(f"{before}/sources\n{before}-2/sources\n")
    (packages / "untouched.py").write_text(f"PLACE = '{before}'\n")
    (before / "sources").mkdir()
    (before / "sources/greeting.py").write_text("print('hello')")
    link = tmp_path / "cached"
    os.link(program, link)
    before.rename(now)

    relocate(now / ".venv", str(before), str(now))

    greeted = subprocess.run([now / ".venv/bin/greet"], capture_output=True, text=True, check=True)
    assert greeted.stdout == "hello\n"
    assert f"{before}-2/sources" in next(now.glob(".venv/lib/*/site-packages/*.pth")).read_text()
    assert str(now) in (now / ".venv/bin/activate").read_text()
    assert str(before) in link.read_text()


def test_make_repairs_a_checkout_that_was_moved(tmp_path: Path) -> None:
    (tmp_path / ".venv/stamps").mkdir(parents=True)
    (tmp_path / "requirements").mkdir()
    (tmp_path / "requirements/build.txt").touch()
    (tmp_path / ".venv/stamps/environment").touch()
    description = tmp_path / ".venv/pyvenv.cfg"
    plan: list[str | Path] = ["make", "--dry-run", "--file", ROOT / "Makefile", ".venv/stamps/environment"]

    outputs = []
    for folder in ("/elsewhere", tmp_path):
        description.write_text(f"command = /usr/bin/python3 -m venv {folder}/.venv\n")
        outputs.append(subprocess.run(plan, cwd=tmp_path, capture_output=True, text=True, check=True).stdout)

    assert "infra.environments prepare" in outputs[0]
    assert "infra.environments prepare" not in outputs[1]


def wheel_of_herons(folder: Path, version: str, content: str = "") -> str:
    """Write a wheel, and return its pin with its hash."""
    folder.mkdir(parents=True, exist_ok=True)
    file, metadata = folder / f"herons-{version}-py3-none-any.whl", f"herons-{version}.dist-info"
    with zipfile.ZipFile(file, "w") as wheel:
        wheel.writestr("herons.py", content)
        wheel.writestr(f"{metadata}/METADATA", f"Metadata-Version: 2.1\nName: herons\nVersion: {version}\n")
        wheel.writestr(f"{metadata}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{metadata}/RECORD", "")
    return f"herons=={version} --hash=sha256:{hashlib.sha256(file.read_bytes()).hexdigest()}\n"


def index_of_herons(folder: Path, version: str, content: str = "") -> str:
    """Write an index of packages, and return the pin of its wheel."""
    pin = wheel_of_herons(folder / "herons", version, content)
    (file,) = (folder / "herons").glob("*.whl")
    (folder / "herons" / "index.html").write_text(f"<a href='{file.name}'>{file.name}</a>")
    return pin


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], list[Path]]:
    """Installs a pin, with a configuration of pip."""
    for name in [*os.environ]:
        if name.startswith(("PIP_", "UV_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", str(tmp_path / "pip.conf"))
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(environments, "MAIN", Path(sys.prefix))

    def install(pin: str, configuration: str) -> list[Path]:
        (tmp_path / "pip.conf").write_text(f"[install]\n{configuration}\n")
        (tmp_path / "requirements.txt").write_text(pin)
        with pytest.raises(SystemExit):
            environments.install(tmp_path / "environment", tmp_path / "requirements.txt")
        return [*tmp_path.glob("environment/lib/*/site-packages/herons.py")]

    return install


def test_uv_finds_packages_where_pip_is_configured_to(
    tmp_path: Path, installed: Callable[[str, str], list[Path]]
) -> None:
    pin = wheel_of_herons(tmp_path / "wheels", "1")

    assert installed(pin, f"no-index = true\nfind-links =\n    {tmp_path / 'wheels'}")


@pytest.mark.parametrize("configuration", ["find-links = {}/extra", "extra-index-url = file://{}/extra"])
def test_a_package_that_is_not_the_locked_one_is_refused(
    tmp_path: Path,
    installed: Callable[[str, str], list[Path]],
    capfd: pytest.CaptureFixture[str],
    configuration: str,
) -> None:
    pin = index_of_herons(tmp_path / "locked", "1")
    index_of_herons(tmp_path / "main", "1", "evil = True")
    index_of_herons(tmp_path / "extra", "1", "evil = True")
    (tmp_path / "extra" / "herons-1-py3-none-any.whl").write_bytes(
        (tmp_path / "extra" / "herons" / "herons-1-py3-none-any.whl").read_bytes()
    )

    assert not installed(pin, f"index-url = file://{tmp_path}/main\n{configuration.format(tmp_path)}")
    assert "Hash mismatch" in capfd.readouterr().err


def test_a_requirement_without_a_hash_is_refused(
    tmp_path: Path, installed: Callable[[str, str], list[Path]], capfd: pytest.CaptureFixture[str]
) -> None:
    wheel_of_herons(tmp_path / "wheels", "1")

    assert not installed("herons==1\n", f"no-index = true\nfind-links = {tmp_path / 'wheels'}")
    assert "--require-hashes" in capfd.readouterr().err


def test_an_extra_index_with_other_versions_is_not_in_the_way(
    tmp_path: Path, installed: Callable[[str, str], list[Path]]
) -> None:
    pin = index_of_herons(tmp_path / "main", "1")
    index_of_herons(tmp_path / "extra", "2")

    assert installed(pin, f"index-url = file://{tmp_path}/main\nextra-index-url = file://{tmp_path}/extra")


def test_a_package_that_only_an_extra_index_has_is_found(
    tmp_path: Path, installed: Callable[[str, str], list[Path]]
) -> None:
    (tmp_path / "main").mkdir()
    pin = index_of_herons(tmp_path / "extra", "1")

    assert installed(pin, f"index-url = file://{tmp_path}/main\nextra-index-url = file://{tmp_path}/extra")


@pytest.mark.parametrize(
    "file", [ROOT / "requirements.txt", *sorted((ROOT / "requirements").glob("*.txt"))], ids=lambda file: file.name
)
def test_every_locked_package_has_a_hash_and_no_file_names_an_index(file: Path) -> None:
    lines = file.read_text().replace("\\\n", "").splitlines()
    pins = [line for line in lines if line.strip() and not line.lstrip().startswith("#")]

    assert pins
    assert [
        pin for pin in pins if not re.fullmatch(r"[\w.-]+(\[[\w,-]+\])?==\S+( ;.+?)?( +--hash=sha256:\w{64})+", pin)
    ] == []
    assert "://" not in file.read_text()


def test_settings_of_pip_become_those_of_uv() -> None:
    pip = {
        "index-url": "https://packages.example/simple",
        "extra-index-url": "\nhttps://a.example/simple\nhttps://b.example/simple",
        "find-links": "/wheels /more",
        "cert": "/etc/own.pem",
        "progress-bar": "off",
    }

    settings = uv_settings(pip, {"HOME": "/root"})

    settings.pop("UV_SYSTEM_CERTS", None)  # if this machine has certificates
    assert settings == {
        "HOME": "/root",
        "SSL_CERT_FILE": "/etc/own.pem",
        "UV_INDEX": "https://packages.example/simple https://a.example/simple",
        "UV_DEFAULT_INDEX": "https://b.example/simple",
        "UV_FIND_LINKS": "/wheels,/more",
    }


@pytest.mark.parametrize(
    ("pip", "own"),
    [
        ({"extra-index-url": "https://a.example/simple"}, {}),
        ({"index-url": "https://a.example/simple"}, {"UV_DEFAULT_INDEX": "https://mine.example/simple"}),
        ({"index-url": "https://a.example/simple"}, {"UV_INDEX": "https://mine.example/simple"}),
    ],
)
def test_indexes_of_pip_are_left_out_if_the_main_one_is_known_otherwise(
    pip: dict[str, str], own: dict[str, str]
) -> None:
    settings = uv_settings(pip, own)

    assert {name: value for name, value in settings.items() if "INDEX" in name} == own
