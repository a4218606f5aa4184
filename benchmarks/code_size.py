"""Count lines, functions, constants, import cycles and words of documentation, of one or two revisions.

Run: ``python benchmarks/code_size.py [--against REVISION]``. Only files that git tracks count. Lines include comments
and blank lines. A room is a module or package directly in ``ragstack_common``; an arrow leads from one to another that
it imports; each room is a floor above those that it imports. A cycle breaker is an import to remove so that sibling
modules and packages no longer import each other in a circle (grimp's nominate_cycle_breakers); imports inside functions
count too. A constant is a name in capital letters that a module of the source assigns; it is used once if one other
place of the source names it.
"""

import argparse
import ast
import json
import re
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.table import Table

REPOSITORY = Path(__file__).parent.parent
LONG_MODULE_LINES = 500
SHORT_FUNCTION_LINES = 3  # with the line of its name
CONSTANT = re.compile("_?[A-Z][A-Z0-9_]+")
IMPORTS = """
import json
import sys
import grimp
roots = sys.argv[1:]
graph = grimp.build_graph(*roots, exclude_type_checking_imports=True, cache_dir=None)
breakers = sum(len(graph.nominate_cycle_breakers(module)) for module in graph.modules if graph.find_children(module))
rooms = {room: {room, *graph.find_descendants(room)} for room in graph.find_children("ragstack_common")}
room_of = {module: room for room, modules in rooms.items() for module in modules}
below = {
    room: {room_of.get(each) for module in modules for each in graph.find_modules_directly_imported_by(module)}
    for room, modules in rooms.items()
}
below = {room: sorted(others - {room, None}) for room, others in below.items()}
print(json.dumps([breakers, below]))
"""


@dataclass
class Counts:
    """Lines and functions of one revision by top-level folder, and the totals of the rest."""

    lines: Counter[str] = field(default_factory=Counter)
    functions: Counter[str] = field(default_factory=Counter)
    files: Counter[str] = field(default_factory=Counter)
    function_lines: list[int] = field(default_factory=list)
    names: Counter[str] = field(default_factory=Counter)
    constants: set[str] = field(default_factory=set)
    long_modules: int = 0
    typescript: int = 0
    typescript_tests: int = 0
    readme_words: int = 0
    words: int = 0
    decision_words: int = 0
    cycle_breakers: int = 0
    rooms: int = 0
    floors: int = 0
    arrows: int = 0

    @property
    def median_function(self) -> float:
        return statistics.median(self.function_lines)

    @property
    def short_functions(self) -> int:
        return sum(lines <= SHORT_FUNCTION_LINES for lines in self.function_lines)

    @property
    def constants_used_once(self) -> int:
        return sum(self.names[name] == 2 for name in self.constants)  # where it is assigned, and where it is used


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--against", metavar="REVISION", help="a revision of git to show first, such as a tag")
    options = parser.parse_args()
    revisions = [options.against] if options.against else []
    columns = {revision: of_revision(revision) for revision in revisions}
    columns["working tree"] = count(REPOSITORY)
    console = Console()
    console.width = max(console.width, 120)
    console.print(table(columns))


def of_revision(revision: str) -> Counts:
    """Count in a temporary checkout."""
    with tempfile.TemporaryDirectory() as folder:
        git("worktree", "add", "--detach", "--quiet", folder, revision)
        try:
            return count(Path(folder))
        finally:
            git("worktree", "remove", "--force", folder)


def git(*arguments: str, root: Path = REPOSITORY) -> str:
    return subprocess.run(["git", *arguments], cwd=root, check=True, capture_output=True, text=True).stdout


def count(root: Path) -> Counts:
    counts = Counts()
    tracked = [path for path in git("ls-files", "-z", root=root).split("\0") if (root / path).is_file()]
    for path in tracked:
        if path.endswith(".py"):
            text = (root / path).read_text(encoding="utf-8")
            room = room_of(path)
            lines = len(text.splitlines())
            counts.lines[room] += lines
            counts.files[room] += 1
            nodes = list(ast.walk(ast.parse(text)))
            functions = [node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
            counts.functions[room] += len(functions)
            if not path.startswith("tests/"):
                counts.long_modules += lines > LONG_MODULE_LINES
                counts.function_lines += [(node.end_lineno or 0) - node.lineno + 1 for node in functions]
                names = [node for node in nodes if isinstance(node, ast.Name)]
                counts.names.update(node.id for node in names)
                counts.names.update(node.attr for node in nodes if isinstance(node, ast.Attribute))
                counts.constants.update(
                    node.id for node in names if isinstance(node.ctx, ast.Store) and CONSTANT.fullmatch(node.id)
                )
        elif path.startswith("web/") and path.endswith((".ts", ".tsx")):
            lines = len((root / path).read_text(encoding="utf-8").splitlines())
            if ".test." in path:
                counts.typescript_tests += lines
            else:
                counts.typescript += lines
        elif path == "README.md":
            counts.readme_words = len((root / path).read_text(encoding="utf-8").split())
        elif path.endswith(".md") and path.startswith("docs/adr/"):
            counts.decision_words += len((root / path).read_text(encoding="utf-8").split())
        elif path.endswith(".md") and (path.startswith("docs/") or path == "CONTRIBUTING.md"):
            counts.words += len((root / path).read_text(encoding="utf-8").split())
    packages = sorted(
        {path.split("/")[0] for path in tracked if path.count("/") == 1 and path.endswith("/__init__.py")}
    )
    packages = [package for package in packages if package != "tests"]
    found = subprocess.run(
        [sys.executable, "-c", IMPORTS, *packages], cwd=root, check=True, capture_output=True, text=True
    )
    counts.cycle_breakers, below = json.loads(found.stdout)
    counts.rooms, counts.floors, counts.arrows = len(below), floors(below), sum(map(len, below.values()))
    return counts


def floors(below: dict[str, list[str]]) -> int:
    """Return how many rooms stand on one another; rooms in a circle are on the same floor."""
    left, number = dict(below), 0
    while left:
        free = [room for room, others in left.items() if left.keys().isdisjoint(others)]
        left = {room: others for room, others in left.items() if room not in free} if free else {}
        number += 1
    return number


def room_of(path: str) -> str:
    """Return the row of a file: its top-level folder, and for tests and the large packages one level more."""
    parts = path.split("/")
    deep = parts[0] in {"tests", "ragstack_common", "ragstack_local"} and len(parts) > 2
    return "/".join(parts[: 2 if deep else 1]) if len(parts) > 1 else "(root)"


def table(columns: dict[str, Counts]) -> Table:
    shown = Table(title="Code and documentation: " + " -> ".join(columns))
    shown.add_column("", no_wrap=True)
    for unit in ("lines", "functions", "files"):
        for _ in columns:
            shown.add_column(unit, justify="right", no_wrap=True)
    rooms = sorted({room for counts in columns.values() for room in counts.lines})
    for name, part in {
        "all source": [room for room in rooms if not room.startswith("tests")],
        "all tests": [room for room in rooms if room.startswith("tests")],
    }.items():
        for room in part:
            shown.add_row(room, *(f"{numbers[room]:,}" for numbers in by_unit(columns)))
        totals = (f"{sum(numbers[room] for room in part):,}" for numbers in by_unit(columns))
        shown.add_row(name, *totals, style="bold", end_section=True)
    for name, value in {
        "median lines of a function": "median_function",
        f"functions of up to {SHORT_FUNCTION_LINES} lines": "short_functions",
        "constants used once": "constants_used_once",
        f"modules over {LONG_MODULE_LINES} lines": "long_modules",
        "imports that close a cycle": "cycle_breakers",
        "rooms of ragstack_common": "rooms",
        "floors": "floors",
        "arrows": "arrows",
        "lines of TypeScript": "typescript",
        "lines of its tests": "typescript_tests",
        "words in docs/, CONTRIBUTING": "words",
        "words in docs/adr/": "decision_words",
        "words in README": "readme_words",
    }.items():
        shown.add_row(name, *(f"{getattr(counts, value):,}" for counts in columns.values()))
    return shown


def by_unit(columns: dict[str, Counts]) -> list[Counter[str]]:
    return [getattr(counts, unit) for unit in ("lines", "functions", "files") for counts in columns.values()]


if __name__ == "__main__":
    main()
