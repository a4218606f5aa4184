"""`pytest --changed`: the tests nearest to what changed, by the import graph, for about half a minute.

A run of the whole suite records how long each file takes.
"""

import subprocess
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

ROOT: Final = Path(__file__).resolve().parents[2]
PACKAGES: Final = ("evaluation", "infra", "lambdas", "local_bedrock", "ragstack_common", "ragstack_local", "tests")
EVERY_ENGINE: Final = (
    "tests/contract/test_backends.py::test_the_chunk_that_answers_comes_first",
    "tests/contract/test_backends.py::test_at_most_top_k_chunks_are_returned",
)
"""Run for each change that the contract of engines depends on: every engine on its real store."""

WHOLE_STACKS: Final = ("tests/clients/", "tests/e2e/", "tests/faults/")
"""Left out unless a test of them changed: a stack takes most of half a minute to start."""

MAX_SECONDS: Final = 20.0
"""Recorded seconds for the selected files; starting, collecting and EVERY_ENGINE take the rest of half a minute."""

SYNTHESES: Final = "tests/infra/"
SYNTHESIS_SECONDS: Final = 8.0
"""Least seconds of a file that synthesizes stacks: what it kept when it was recorded is not that of changed sources."""

UNKNOWN_SECONDS: Final = 1.5
RECORDED: Final = "ragstack/seconds"
CHOSEN: Final = "chosen"

_seconds: defaultdict[str, float] = defaultdict(float)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--changed", action="store_true", help="run the tests nearest to what changed, in half a minute")


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell a worker of pytest-xdist what was chosen: its own arguments are those of the command line."""
    if node.config.getoption("--changed"):
        node.workerinput[CHOSEN] = [*node.config.args]


def pytest_configure(config: pytest.Config) -> None:
    if hasattr(config, "workerinput"):
        config.args[:] = config.workerinput.get(CHOSEN, config.args)
    elif config.getoption("--changed"):
        cache = getattr(config, "cache", None)
        changed = changed_files()
        affected = list(nearest(changed))
        chosen = within_half_a_minute(affected, changed, cache.get(RECORDED, {}) if cache else {})
        left_out = [file for file in affected if file not in chosen]
        if not chosen:
            pytest.exit("No test imports or names what differs from the main branch", returncode=0)
        print(f"{len(chosen)} of the {len(affected)} test files that the changes affect; `make test` runs all")  # noqa: T201
        if left_out:
            print(f"Left out, nearest first: {', '.join(left_out[:5])}{', ...' * (len(left_out) > 5)}")  # noqa: T201
        config.args[:] = [*chosen, *(test for test in EVERY_ENGINE if test.partition("::")[0] in left_out)]


def within_half_a_minute(affected: list[str], changed: list[str], recorded: dict[str, float]) -> list[str]:
    """Choose every changed test, and the nearest others that fit into the time."""
    chosen, seconds = [], 0.0
    for file in affected:
        expected = recorded.get(file, UNKNOWN_SECONDS)
        if file.startswith(SYNTHESES):
            expected = max(expected, SYNTHESIS_SECONDS)
        if file in changed or seconds + expected <= MAX_SECONDS:
            seconds += expected
            chosen.append(file)
    return chosen


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the slow tests of files that did not change."""
    if config.getoption("--changed"):
        changed = changed_files()
        items[:] = [
            item
            for item in items
            if item.get_closest_marker("slow") is None or item.nodeid.partition("::")[0] in changed
        ]


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if "slow" in report.keywords:
        return
    _seconds[report.nodeid.partition("::")[0]] += report.duration


def pytest_sessionfinish(session: pytest.Session) -> None:
    config = session.config
    cache = getattr(config, "cache", None)  # absent with -p no:cacheprovider
    if cache and not config.getoption("--changed") and not hasattr(config, "workerinput"):
        cache.set(RECORDED, {**cache.get(RECORDED, {}), **_seconds})


def changed_files() -> list[str]:
    """List the files that differ from the main branch, and those that git does not know yet."""
    base = _git("merge-base", "HEAD", "main") or ["HEAD"]
    return [*_git("diff", "--name-only", base[0]), *_git("ls-files", "--others", "--exclude-standard")]


def _git(*arguments: str) -> list[str]:
    return subprocess.run(
        ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.splitlines()


def nearest(changed: list[str]) -> Iterator[str]:
    """Yield the test files that a change affects, the nearest first.

    These are changed tests, those of the same name as a changed module, those that name another changed file, those
    that import a changed module, by the steps between, and those of the same package: they may load it in another way.
    """
    import grimp  # noqa: PLC0415 - only this needs it

    graph = grimp.build_graph(*PACKAGES, cache_dir=None, exclude_type_checking_imports=True)
    tests = {module: _path(module) for module in graph.modules if module.rpartition(".")[2].startswith("test_")}
    for module in tests:
        parts = module.split(".")
        for end in range(1, len(parts)):
            if (conftest := ".".join([*parts[:end], "conftest"])) in graph.modules:
                graph.add_import(importer=module, imported=conftest)
    names = [Path(file).name for file in changed if not file.endswith(".py")]
    seen = {module for file in changed if (module := _module(file)) in graph.modules}
    own = {(module.partition(".")[0], f"test_{module.rpartition('.')[2]}") for module in seen}
    seen |= {test for test in tests if (test.split(".")[1], test.rpartition(".")[2]) in own}
    seen |= {test for test, path in tests.items() if any(name in (ROOT / path).read_text() for name in names)}
    yield from sorted(tests[module] for module in seen if module in tests)
    step = seen
    while step := {each for module in step for each in graph.find_modules_that_directly_import(module)} - seen:
        seen = seen | step
        found = {tests[module] for module in step if module in tests}
        yield from sorted(path for path in found if not path.startswith(WHOLE_STACKS))
    packages = tuple(f"tests/{file.partition('/')[0]}/" for file in changed if file.endswith(".py"))
    folders = tuple(f"tests/{file.rpartition('/')[0]}/" for file in changed)
    others = (path for module, path in tests.items() if module not in seen and path.startswith(packages))
    yield from sorted(others, key=lambda path: (not path.startswith(folders), path))


def _module(file: str) -> str:
    return file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _path(module: str) -> str:
    return module.replace(".", "/") + ".py"
