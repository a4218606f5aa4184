"""A whole run: the checks, the report, and the removal of everything that was created."""

import secrets
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from botocore.config import Config

from ragstack_common import __version__
from ragstack_local.certify.catalogue import KINDS
from ragstack_local.certify.check import Check, Outcome
from ragstack_local.certify.costs import cost_of
from ragstack_local.certify.journal import Journal, Resource, dead_journals
from ragstack_local.certify.removal import WAIT_SECONDS, Clients, remove_all
from ragstack_local.certify.report import Report
from ragstack_local.certify.runner import run_checks
from ragstack_local.certify.site import Place, Site

if TYPE_CHECKING:
    from ragstack_local.connection.connection import Connection

LOCAL_WAIT_SECONDS: Final = 0.1

Left = list[tuple[Resource, str]]


def certify(
    session: Any,
    place: Place,
    checks: Sequence[Check],
    journals: Path,
    *,
    connection: "Connection | None" = None,
    show: Callable[[Outcome], None] = lambda _: None,
    cleaning: Callable[[Resource], None] = lambda _: None,
) -> tuple[Report, Left, bool]:
    """Run checks, and remove what they created, even after an interrupt.

    Args:
        session: A session of boto3.
        place: Where the checks are tried.
        checks: Those to try.
        journals: The folder of the journals.
        connection: The local stack.
        show: Receives each outcome.
        cleaning: Receives each resource before it is removed.

    Returns:
        The report, what could not be removed, and whether the run was interrupted.
    """
    started, start = datetime.now(UTC), time.monotonic()
    token = secrets.token_hex(5)
    journal = Journal.begin(journals, token, place.fields)
    site = Site(session, place, token, journal, connection=connection)
    try:
        outcomes = run_checks(site, checks, show)
    finally:
        left = _remove(session, place, journal, cleaning)
    report = Report(
        target="AWS" if place.is_aws else "local stack",
        region=place.region,
        started=f"{started:%Y-%m-%d %H:%M} UTC",
        minutes=round((time.monotonic() - start) / 60, 1),
        versions={"RAGStack": __version__, "boto3": version("boto3"), "botocore": version("botocore")},
        outcomes=outcomes,
        calls=site.calls,
        costs=cost_of(site.calls) if place.is_aws else {},
    )
    return report, left, site.stopping.is_set()


def clean_up(
    session: Any, place: Place, journals: Path, *, cleaning: Callable[[Resource], None] = lambda _: None
) -> tuple[int, Left, list[str]]:
    """Remove what earlier runs left at a place.

    Returns:
        The number of resources that are gone, what could not be removed, and the other accounts, each with a Region,
        in which runs left something.
    """
    left: Left = []
    elsewhere: set[str] = set()
    count = 0
    with dead_journals(journals) as found:
        for journal in found:
            remaining = journal.remaining()
            if not remaining:
                continue
            if journal.place == place.fields:
                kept = _remove_all(session, place, journal, cleaning)
                count += len(remaining) - len(kept)
                left += kept
            elif journal.place.get("account"):
                elsewhere.add(f"{journal.place['account']}, {journal.place['region']}")
    return count, left, sorted(elsewhere)


def _remove(session: Any, place: Place, journal: Journal, cleaning: Callable[[Resource], None]) -> Left:
    try:
        return _remove_all(session, place, journal, cleaning)
    except KeyboardInterrupt:
        command = f"ragstack certify{' --aws' if place.is_aws else ''} --clean-up"
        raise KeyboardInterrupt(f"Not everything is removed: `{command}` removes the rest") from None
    finally:
        journal.end()


def _remove_all(session: Any, place: Place, journal: Journal, cleaning: Callable[[Resource], None]) -> Left:
    wait_seconds = WAIT_SECONDS if place.is_aws else LOCAL_WAIT_SECONDS
    return remove_all(journal, KINDS, _clients(session, place), show=cleaning, wait_seconds=wait_seconds)


def _clients(session: Any, place: Place) -> Clients:
    """Return what makes clients for the removal: not those of the checks, which end with an interrupt."""
    config = Config(retries={"mode": "standard", "total_max_attempts": 5})
    return lambda service: session.client(
        service,
        place.region,
        endpoint_url=place.endpoint(service),
        config=config if place.is_aws else config.merge(Config(proxies={})),
    )
