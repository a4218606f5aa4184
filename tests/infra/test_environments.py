"""The environments of the Makefile: where packages come from, a checkout that moved, and what `make clean` keeps."""

import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

from infra import environments
from infra.environments import relocate, uv_settings

ROOT = Path(__file__).parents[2]


def make(folder: Path, target: str, typed: str = "") -> "subprocess.CompletedProcess[str]":
    command = ["make", "--silent", "--file", ROOT / "Makefile", target]
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
    (tmp_path / ".venv/stamps/environment").touch()
    description = tmp_path / ".venv/pyvenv.cfg"
    plan = ["make", "--dry-run", "--file", ROOT / "Makefile", ".venv/stamps/environment"]

    outputs = []
    for folder in ("/elsewhere", tmp_path):
        description.write_text(f"command = /usr/bin/python3 -m venv {folder}/.venv\n")
        outputs.append(subprocess.run(plan, cwd=tmp_path, capture_output=True, text=True, check=True).stdout)

    assert "infra.environments prepare" in outputs[0]
    assert "infra.environments prepare" not in outputs[1]


def test_uv_finds_packages_where_pip_is_configured_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with zipfile.ZipFile(tmp_path / "herons-1-py3-none-any.whl", "w") as wheel:
        wheel.writestr("herons.py", "")
        wheel.writestr("herons-1.dist-info/METADATA", "Metadata-Version: 2.1\nName: herons\nVersion: 1\n")
        wheel.writestr("herons-1.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr("herons-1.dist-info/RECORD", "")
    (tmp_path / "pip.conf").write_text(f"[install]\nno-index = true\nfind-links =\n    {tmp_path}\n")
    for name in [*os.environ]:
        if name.startswith(("PIP_", "UV_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", str(tmp_path / "pip.conf"))
    monkeypatch.setattr(environments, "MAIN", Path(sys.prefix))

    with pytest.raises(SystemExit) as ended:
        environments.install(tmp_path / "environment", ["herons"])

    assert ended.value.code == 0
    assert [*tmp_path.glob("environment/lib/*/site-packages/herons.py")]


def test_settings_of_pip_become_those_of_uv() -> None:
    pip = {
        "index-url": "https://packages.example/simple",
        "extra-index-url": "\nhttps://a.example/simple\nhttps://b.example/simple",
        "find-links": "/wheels /more",
        "cert": "/etc/own.pem",
        "progress-bar": "off",
    }

    settings = uv_settings(pip, {"UV_DEFAULT_INDEX": "https://mine.example/simple", "HOME": "/root"})

    settings.pop("UV_SYSTEM_CERTS", None)  # if this machine has certificates
    assert settings == {
        "HOME": "/root",
        "SSL_CERT_FILE": "/etc/own.pem",
        "UV_DEFAULT_INDEX": "https://mine.example/simple",
        "UV_FIND_LINKS": "/wheels,/more",
        "UV_INDEX": "https://a.example/simple https://b.example/simple",
        "UV_INDEX_STRATEGY": "unsafe-best-match",
    }
