"""Runs checks: the topics at the same time, the checks of each one after the other."""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import Final

from botocore.exceptions import BotoCoreError, ClientError

from ragstack_local.certify.check import Check, Json, NotTried, Outcome, Verdict
from ragstack_local.certify.site import Site, described, is_refused

LIMITS: Final = "limits"
"""The topic of checks that send more calls than a service allows: it starts when all others have ended."""


def run_checks(site: Site, checks: Sequence[Check], show: Callable[[Outcome], None] = lambda _: None) -> list[Outcome]:
    """Run checks and return their outcomes, in the order of the checks.

    Ctrl-C stops the run: the checks that were not finished are not tried, and ``site.stopping`` is set.

    Args:
        site: Where they are tried.
        checks: Those to run.
        show: Called with each outcome as soon as there is one.
    """
    outcomes: dict[str, Outcome] = {}
    lock = Lock()

    def run_topic(topic: str) -> None:
        for check in checks:
            if check.topic == topic:
                outcome = run_check(site, check)
                with lock:
                    outcomes[check.name] = outcome
                    show(outcome)

    topics = [*dict.fromkeys(check.topic for check in checks)]
    for some in ([topic for topic in topics if topic != LIMITS], [topic for topic in topics if topic == LIMITS]):
        _run(site, some, run_topic)
    return [outcomes[check.name] for check in checks]


def _run(site: Site, topics: Iterable[str], run_topic: Callable[[str], None]) -> None:
    topics = list(topics)
    if not topics:
        return
    with ThreadPoolExecutor(len(topics)) as threads:
        try:
            running = [threads.submit(run_topic, topic) for topic in topics]
            while not all(each.done() for each in running):
                try:
                    for each in running:
                        each.result()
                except KeyboardInterrupt:
                    site.stopping.set()
        except BaseException:  # the threads are waited for
            site.stopping.set()
            raise


def run_check(site: Site, check: Check) -> Outcome:
    """Run a check; every error becomes an outcome."""
    start = site.clock()

    def ended(verdict: Verdict, observed: Json = None, reason: str = "") -> Outcome:
        return Outcome(check, verdict, observed, reason, round(site.clock() - start, 1))

    if check.aws_only and not site.is_aws:
        return ended(Verdict.NOT_TRIED, reason=check.aws_only)
    with site.within(check.seconds):
        try:
            site.require_time()
            observed = check.observe(site)
        except NotTried as error:
            return ended(Verdict.NOT_TRIED, reason=str(error))
        except ClientError as error:
            if is_refused(error):
                return ended(Verdict.NOT_TRIED, reason=described(error))
            observed = {"error": error.response["Error"]["Code"]}
            if error.response.get("ResponseMetadata", {}).get("MaxAttemptsReached") and observed != check.expected:
                return ended(Verdict.NOT_TRIED, reason=f"{described(error)}, as often as it is tried")
        except BotoCoreError as error:
            return ended(Verdict.NOT_TRIED, reason=described(error))
        except Exception as error:  # noqa: BLE001 - an answer that has another form than the check reads
            observed = {"raised": type(error).__name__}
    return ended(Verdict.MATCHES if observed == check.expected else Verdict.DIFFERS, observed)
