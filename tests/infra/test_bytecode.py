"""What the functions import is compiled by their Python, wherever the stacks are synthesized."""

import sys
import zipfile
from pathlib import Path

import pytest

from infra import bytecode
from infra.bytecode import compile_folder, compiled_copy, compiles
from infra.layers import LAMBDA_PYTHON, SOURCE, common_layer, function_code
from infra.target import Target

from .test_layers import built

MAGIC_OF_3_14 = (3627).to_bytes(2, "little") + b"\r\n"
"""Source: CPython 3.14, Include/internal/pycore_magic_number.h."""

UNCHECKED_HASH = (1).to_bytes(4, "little")
"""Source: PEP 552."""

OWN = sys.version_info[:2]


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(bytecode, "BUILD", tmp_path / "build")
    folder = tmp_path / "package"
    (folder / "__pycache__").mkdir(parents=True)
    (folder / "__pycache__" / "models.cpython-38.pyc").write_bytes(b"")
    (folder / "models.py").write_text("ONE = 1\n")
    (folder / "left.py").write_text("")
    return folder


def test_bytecode_fits_lambdas_python(tmp_path: Path) -> None:
    if not compiles(LAMBDA_PYTHON):
        pytest.skip("Pyodide cannot be installed")
    (tmp_path / "models.py").write_text("ONE = 1\n")

    compile_folder(tmp_path, python=LAMBDA_PYTHON)

    header = (tmp_path / "__pycache__" / "models.cpython-314.pyc").read_bytes()[:8]
    assert header == MAGIC_OF_3_14 + UNCHECKED_HASH


def test_a_copy_has_only_sources_and_their_bytecode(source: Path) -> None:
    copy = compiled_copy(source, python=OWN, inside="python/package", left_out=["left.py"])

    tag = sys.implementation.cache_tag
    files = {str(file.relative_to(copy)) for file in copy.rglob("*") if file.is_file()}
    assert files == {"python/package/models.py", f"python/package/__pycache__/models.{tag}.pyc"}


def test_a_copy_is_made_again_only_when_sources_change(source: Path) -> None:
    first, again = (compiled_copy(source, python=OWN) for _ in range(2))
    (source / "models.py").write_text("ONE = 2\n")

    assert first == again
    assert compiled_copy(source, python=OWN) != first


def test_a_copy_can_have_files_of_its_own(source: Path) -> None:
    plain = compiled_copy(source, python=OWN, inside="package")
    copies = [compiled_copy(source, python=OWN, inside="package", added={"a.json": text}) for text in (b"1", b"2")]

    assert [(copy / "package" / "a.json").read_bytes() for copy in copies] == [b"1", b"2"]
    assert not (plain / "package" / "a.json").exists()


def test_without_pyodide_one_line_says_what_is_missing(
    source: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    bytecode._pyodide.cache_clear()
    monkeypatch.setattr(bytecode, "_tool", lambda _: "no-such-command")
    monkeypatch.setattr(bytecode, "_is_own", lambda _: False)

    copy = compiled_copy(source, python=LAMBDA_PYTHON)
    compiled_copy(source, python=LAMBDA_PYTHON)

    bytecode._pyodide.cache_clear()
    assert sorted(file.name for file in copy.iterdir()) == ["left.py", "models.py"]
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("The functions have no bytecode, so each cold start takes longer")
    assert "Connect to the npm registry, or run the CDK with Python 3.14" in line


@pytest.mark.parametrize("target", Target)
def test_the_layer_of_packages_has_bytecode_for_every_source(target: Target) -> None:
    names = zipfile.ZipFile(built(target)).namelist()

    sources = [name for name in names if name.endswith(".py")]
    compiled = [name for name in names if name.endswith(".pyc")]

    assert len(compiled) == len(sources) > 100


def test_our_own_code_has_bytecode_too() -> None:
    layer, code = common_layer(Target.LOCAL), function_code("query", Target.LOCAL)

    tag = sys.implementation.cache_tag
    assert (layer / "python" / SOURCE.name / "__pycache__" / f"shortcuts.{tag}.pyc").is_file()
    assert (code / "__pycache__" / f"handler.{tag}.pyc").is_file()
