from fnmatch import fnmatchcase
from pathlib import Path
from re import findall

from ragstack_local.certify.catalogue import CHECKS
from ragstack_local.certify.deployed import untried

OPERATIONS = Path(__file__).parents[3] / "docs" / "OPERATIONS.md"


def test_the_table_of_what_aws_has_not_confirmed_names_checks_that_exist() -> None:
    section = OPERATIONS.read_text().partition("## Not confirmed on AWS")[2].partition("\n## ")[0]
    rows = [line.split("|") for line in section.splitlines() if line.startswith("| ")][1:]
    tried = {check.name for check in CHECKS} - {check.name for check in untried.CHECKS}
    named = [pattern for row in rows for pattern in findall(r"`([^`]+)`", row[4])]

    assert all(row[4].strip() == "none" or "`" in row[4] for row in rows)
    assert [each for each in named if not any(fnmatchcase(name, each) for name in tried)] == []
