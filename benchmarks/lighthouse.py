"""Run Lighthouse on each page of the console, signed in, on a local stack that is up.

Each run is a first visit: the browser's cache is emptied before it. `mobile` is Lighthouse's own default, a simulated
slow 4G (150 ms, 1.6 Mbit/s) and a processor four times slower; `desktop` is its own too. Milliseconds are medians of
the runs, scores the median and the lowest. A busy machine makes all of them worse, so the load is printed.

Run: ``make demo`` in one terminal, then ``python benchmarks/lighthouse.py``, with Debian's Chromium. The first run
installs Lighthouse into benchmarks/parts/lighthouse (180 MB).
"""

import argparse
import json
import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from statistics import median
from typing import Any, Final

from parts.measuring import table
from rich.console import Console

from ragstack_local.connection.connection import Connection, Project

FOLDER: Final = Path(__file__).parent / "parts" / "lighthouse"
BIN: Final = Path(sys.executable).parent
CHROMIUM: Final = "/usr/bin/chromium"
SCORES: Final = ("performance", "accessibility", "best-practices")
TIMES: Final = {
    "first-contentful-paint": "first paint",
    "largest-contentful-paint": "largest paint",
    "total-blocking-time": "blocked",
    "speed-index": "speed index",
}
WANTED: Final = 0.98
MOST_SHIFT: Final = 0.05


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--url", help="of the console (default: that of the stack that is up)")
    parser.add_argument("--user", default="olga", help="an example user who may see all pages (default: %(default)s)")
    parser.add_argument("--runs", type=int, default=5, help="of each page (default: %(default)s)")
    parser.add_argument("--form", choices=("mobile", "desktop"), nargs="+", default=("mobile", "desktop"))
    arguments = parser.parse_args()
    url = arguments.url or Connection.from_running_stack(Project.find().running).console_url
    if not (FOLDER / "node_modules").exists():
        subprocess.run([BIN / "npm", "--prefix", FOLDER, "ci", "--silent", "--no-fund", "--no-audit"], check=True)
    is_met = True
    for form in arguments.form:
        found: dict[str, list[dict[str, Any]]] = defaultdict(list)
        command = [BIN / "node", FOLDER / "audit.mjs", url, CHROMIUM, arguments.user, form, str(arguments.runs)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            for line in process.stdout or ():
                run = json.loads(line)
                found[run["page"]].append(run)
        if process.returncode != 0:
            return process.returncode
        load = "load {:.1f}, {:.1f}".format(*os.getloadavg()[:2])
        columns = ("page", *SCORES, *(f"{name}, ms" for name in TIMES.values()), "layout shift")
        Console(width=160).print(table(f"{form}, {arguments.runs} runs, {load}", columns, map(row, found.values())))
        for name, runs in found.items():
            is_met &= all(median(run["scores"][score] for run in runs) >= WANTED for score in SCORES)
            is_met &= max(run["shift"] for run in runs) < MOST_SHIFT
            if failed := sorted({audit for run in runs for audit in run["failed"]}):
                print(f"{name}: below .9 in a run: {', '.join(failed)}")
    return 0 if is_met else 1


def row(runs: list[dict[str, Any]]) -> list[str]:
    """Return the figures of a page."""
    scores = [[run["scores"][name] for run in runs] for name in SCORES]
    times = [median(run["milliseconds"][name] for run in runs) for name in TIMES]
    return [
        runs[0]["page"],
        *(f"{median(each):.2f} ({min(each):.2f})" for each in scores),
        *(f"{each:,.0f}" for each in times),
        f"{max(run['shift'] for run in runs):.3f}",
    ]


if __name__ == "__main__":
    sys.exit(main())
