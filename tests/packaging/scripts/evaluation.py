"""Measure a small data set."""

import json
import subprocess
import sys
from pathlib import Path

data = Path("data")
(data / "qrels").mkdir(parents=True)
texts = {"leave": "Employees have thirty days of leave.", "lunch": "Lunch is at noon.", "door": "The door is locked."}
rows = [{"_id": name, "title": name, "text": text} for name, text in texts.items()]
(data / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
asked = {"1": "How many days of leave?", "2": "When is lunch?"}
(data / "queries.jsonl").write_text("".join(json.dumps({"_id": i, "text": text}) + "\n" for i, text in asked.items()))
(data / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n1\tleave\t1\n2\tlunch\t1\n")

ragstack = Path(sys.executable).parent / "ragstack"
for command in (
    ["eval", "search", "data", "--output", "figures"],
    ["eval", "answers", "data", "--output", "answers"],
):
    done = subprocess.run([ragstack, *command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
assert any(Path("figures").iterdir())
