"""The patterns of a data source, matched in a process of its own.

A regular expression such as ``(a+)+b`` can take years, and Python cannot interrupt it: it would stop the whole server,
and every later one, which continues the job.
"""

import json
import subprocess
import sys
from collections.abc import Iterable, Sequence
from typing import Final

from local_bedrock.reading.sources import ListingFailed

MAX_SECONDS: Final = 30
"""For all keys of a bucket: simple patterns match a million in a second."""

_MATCH: Final = """\
import json, re, resource, sys
seconds, patterns, keys = json.load(sys.stdin)
resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
included, excluded = ([re.compile(each, re.DOTALL) for each in some] for some in patterns)
json.dump([
    key for key in keys
    if (not included or any(each.fullmatch(key) for each in included))
    and not any(each.fullmatch(key) for each in excluded)
], sys.stdout)
"""
"""Ends by itself too, if the server was killed."""


def matching(included: Sequence[str], excluded: Sequence[str], keys: Iterable[str]) -> set[str]:
    """Return the keys that one of the included patterns matches, if there are any, and no excluded one.

    Raises:
        ListingFailed: The patterns take too long.
    """
    if not included and not excluded:
        return {*keys}
    given = json.dumps([MAX_SECONDS, [[*included], [*excluded]], [*keys]])
    command = [sys.executable, "-I", "-c", _MATCH]
    try:
        done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=MAX_SECONDS, check=True)  # noqa: S603 - our own command
    except (subprocess.TimeoutExpired, subprocess.CalledProcessError):
        raise ListingFailed(
            f"The inclusionPatterns and exclusionPatterns could not be matched in {MAX_SECONDS} seconds: avoid nested"
            " repetitions such as (a+)+"
        ) from None
    return {*json.loads(done.stdout)}
