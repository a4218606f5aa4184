"""The app as a whole: small, offline, and without findings."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from infra.layers import BUILD

from .conftest import BUILT_LAYERS, CHOSEN, LOCAL, ROOT, TUNED

pytestmark = pytest.mark.xdist_group("synthesized stacks")

STACKS = ("Storage", "KnowledgeBase", "Ingestion", "Api")

UNPACKED = Path.home() / ".cache" / "aws" / "jsii" / "package-cache"
"""The folder with the CDK's unpacked packages, for environments without a home: unpacking takes ten seconds."""

WITHOUT_BYTECODE = """
import runpy
from infra import bytecode
bytecode._is_own = lambda _: False
bytecode._pyodide = lambda: None
runpy.run_path("app.py", run_name="__main__")
"""
"""The app, which compiles nothing: after each change that takes 15 seconds or more, and test_bytecode.py compiles."""


@pytest.mark.parametrize(
    "context",
    [{}, {"auth": "api_key", "access": "none"}, {"contextual_headers": "on"}, TUNED, CHOSEN, LOCAL],
    ids=["aws", "keys", "headers", "tuned", "chosen", "local"],
)
def test_cdk_nag_finds_only_acknowledged_violations(synthesize: Any, context: dict[str, str]) -> None:
    assert synthesize(**context).violations == []


def test_cfn_lint_finds_no_error(aws: Any, lint: Any) -> None:
    lint(*(aws.folder / f"RagStack{stack}.template.json" for stack in STACKS))


def test_the_prefix_names_every_stack(synthesize: Any) -> None:
    prefix = "Knowledge-Base-Of-Legal"

    stacks = synthesize(prefix=prefix).templates

    assert set(stacks) == {f"{prefix}{stack}" for stack in STACKS}


@pytest.mark.slow
def test_cdk_synth_needs_neither_credentials_nor_a_home(tmp_path: Path, stand_in_layer: Path, tools: Path) -> None:
    cdk = ROOT / "node_modules" / ".bin" / "cdk"
    if not cdk.exists():
        pytest.skip("the CDK command line is not installed (make setup does it)")
    app = tmp_path / "app_without_bytecode.py"
    app.write_text(WITHOUT_BYTECODE)
    built = sorted(BUILD.glob("*.zip"))

    finished = subprocess.run(
        [
            cdk,
            "synth",
            "--quiet",
            "--app",
            f"{sys.executable} {app}",
            "--output",
            tmp_path / "out",
            *(part for name in BUILT_LAYERS for part in ("-c", f"{name}={stand_in_layer}")),
        ],
        capture_output=True,
        check=False,
        cwd=ROOT,
        env={
            "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(tmp_path),
            "PYTHONPATH": str(ROOT),
            "JSII_RUNTIME_PACKAGE_CACHE_ROOT": str(UNPACKED),
            "CDK_VALIDATION": "false",  # the assemblies of the other tests are validated
        },
        text=True,
    )

    assert finished.returncode == 0, finished.stderr
    assert len(list((tmp_path / "out").glob("*.template.json"))) == 4
    assert sorted(BUILD.glob("*.zip")) == built, "a layer without bytecode replaced the one that was built"


def test_a_mistake_is_answered_in_one_line(tmp_path: Path, tools: Path) -> None:
    finished = subprocess.run(
        [sys.executable, "app.py"],
        capture_output=True,
        check=False,
        cwd=ROOT,
        env={
            **os.environ,
            "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}",
            "CDK_OUTDIR": str(tmp_path / "out"),
            "CDK_CONTEXT_JSON": '{"auth": "none"}',
        },
        text=True,
    )

    assert finished.returncode == 1
    assert finished.stderr.splitlines() == ["auth=none is for target=local: choose from iam, api_key, cognito and oidc"]
