"""What one invocation of the function `ingestion` does about its documents."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from ragstack_common.documents import fault_of_uri
from ragstack_common.ingestion.calls import DOCUMENTS_PER_CALL
from ragstack_common.ingestion.first_delay import first_delay
from ragstack_common.ingestion.messages import follow
from ragstack_common.ingestion.operations import named, operation_for
from ragstack_common.ingestion.outcomes import may_be_untold
from ragstack_common.ingestion.problems import Problem, Remedy, problem_of
from ragstack_common.ingestion.queues import Letter
from ragstack_common.ingestion.services import CALL_ERRORS, Services
from ragstack_common.ingestion.submission import OUT_OF_TIME, Submission, Submitter
from ragstack_common.registry import life
from ragstack_common.registry.answers import refused, told
from ragstack_common.registry.documents import Change
from ragstack_common.registry.life import Seen, Step
from ragstack_common.registry.records import DocumentRecord, Observation, OperationKind, Status
from ragstack_common.telemetry import LOGGER

WAITING_SECONDS: Final = 60.0
"""How long documents wait for the end of an ingestion job before they are looked at again."""

_SOMEBODY_ELSES: Final = Problem("Another function works on the document", Remedy.WAITING, after_seconds=2.0)
"""It is most often done long before its lease is over; if it has died, the message comes again until then."""

_LOST_RACE: Final = Problem("Another function wrote the document", Remedy.WAITING, after_seconds=1.0)

LAST_CALL_SECONDS: Final = 20.0
"""So long before the function is ended no call is begun any more: one with its repetitions may take as long."""

LAST_CALL_SHARE: Final = 1 / 3
"""The same, where the function has little time in all."""

USUAL_CALL_SECONDS: Final = 2.0
"""What a call takes, its turn included. No more documents are claimed than there is time for."""


class Work:
    """Brings documents on their way, and knows what was in the way of each.

    Attributes:
        problems: Why a document could not be dealt with, by URI. A document that is not among them is in a final
            state, or a message of the status queue sees to it.
    """

    def __init__(self, services: Services, seen: Mapping[str, Seen], deadline: float) -> None:
        """Begin with what the messages say of each document.

        Args:
            services: What to work with.
            seen: By URI.
            deadline: Seconds since 1970. Until then nobody else takes over what is claimed here.
        """
        self.problems: dict[str, Problem] = {}
        self._services = services
        self._seen = seen
        self._deadline = deadline
        seconds_left = deadline - services.clock()
        self._last_call = deadline - min(LAST_CALL_SECONDS, LAST_CALL_SHARE * seconds_left)
        self._records: dict[str, DocumentRecord] = {}
        self._claimed: set[str] = set()
        self._followed: set[str] = set()

    def carry_out(self, delivered_before: Iterable[str]) -> None:
        """Do what is to be done.

        Args:
            delivered_before: Documents whose message an earlier invocation may have carried out, and died.
        """
        try:
            if self._seen and not self._is_shut_out():
                self._read()
                self._go_on([*self._not_known(delivered_before)])
        except CALL_ERRORS as error:
            LOGGER.warning("%d documents were not dealt with: %s", len(self._seen), error)
            for uri in self._seen:
                self.problems.setdefault(uri, problem_of(error))

    def give_up(self, uris: Iterable[str]) -> bool:
        """Write and tell that documents have failed, of those that nothing else sees to.

        Returns:
            Whether there were any; the dead-letter queue has been told of each.

        Raises:
            ClientError, RegistryError, DeliveryError: It could not be written or told.
        """
        now = self._services.clock()
        records = [self._records[uri] for uri in uris if uri in self._records and uri in self.problems]
        changes = [
            Change(record, self._given_up(record, now))
            for record in records
            if not (record.is_final or record.is_followed or self._is_somebody_elses(record, now))
        ]
        written = self._write(changes)
        self._tell([change.after.uri for change in changes if change.after.uri in written])
        return bool(written)

    def _is_somebody_elses(self, record: DocumentRecord, now: float) -> bool:
        return record.is_claimed(now) and record.uri not in self._claimed

    def _given_up(self, record: DocumentRecord, now: float) -> DocumentRecord:
        reason = f"Given up: {self.problems[record.uri].cause}"
        if record.in_knowledge_base:
            reason = f"{reason}; something of it may be found all the same"
        after = life.failed(record, reason, now)
        return after if after.operation else named(after, OperationKind.INGEST)

    def _is_shut_out(self) -> bool:
        """Tell whether everything must wait for the end of a synchronisation."""
        until = self._services.gate.closed_until()
        if until is None:
            return False
        wait = min(WAITING_SECONDS, max(1.0, until - self._services.clock()))
        problem = Problem("The data source is being synchronised as a whole", Remedy.WAITING, wait)
        self.problems = dict.fromkeys(self._seen, problem)
        return True

    def _read(self) -> None:
        """Read the records; one that cannot be read is in nobody else's way."""
        for uri, found in self._services.registry.read_each(self._seen).items():
            if isinstance(found, DocumentRecord):
                self._records[uri] = found
            else:
                self.problems[uri] = problem_of(found)

    def _not_known(self, delivered_before: Iterable[str]) -> Iterable[str]:
        """Find the documents that the registry has not taken everything into account for."""
        known = {uri for uri, record in self._records.items() if life.is_known(record, self._seen[uri])}
        ended = [
            uri
            for uri in delivered_before
            if uri in known and self._records[uri].status in (Status.FAILED, Status.DELETED)
        ]
        self._try_to_tell(ended)
        return (uri for uri in self._records if uri not in known)

    def _go_on(self, uris: Sequence[str]) -> None:
        notes: list[Change] = []
        endings: list[Change] = []
        claims: list[Change] = []
        observed = self._observe(uris)
        now = self._services.clock()
        for uri, found in observed.items():
            before, seen = self._records[uri], self._seen[uri]
            observation = life.standing(before, found)
            step = _step(before, observation, seen, now)
            if step is Step.LATER:
                self.problems[uri] = _SOMEBODY_ELSES
            elif step is Step.NOTE:
                notes.append(Change(before, life.noted(before, observation, seen, now)))
            elif step is Step.FAIL:
                reason = observation.refusal or "It cannot be submitted"
                after = life.failed(before, reason, now, observed=observation, seen=seen)
                endings.append(Change(before, named(after, OperationKind.INGEST)))
            elif step is Step.FORGET:
                endings.append(Change(before, named(life.forgotten(before, now, seen), OperationKind.DELETE)))
            elif step in (Step.INGEST, Step.DELETE):
                operation = operation_for(before, observation, step, self._deadline)
                claims.append(Change(before, life.claimed(before, observation, seen, operation, now)))
        claims = self._as_many_as_there_is_time_for(claims, now)
        endings, claims = self._what_can_follow(endings, now), self._what_can_follow(claims, now)
        written = self._write([*notes, *endings, *claims])
        self._follow_again([change.after for change in notes if change.after.uri in written])
        self._try_to_tell([change.after.uri for change in endings if change.after.uri in written])
        self._claimed = {change.after.uri for change in claims if change.after.uri in written}
        self._submit([self._records[change.after.uri] for change in claims if change.after.uri in written])

    def _what_can_follow(self, changes: list[Change], now: float) -> list[Change]:
        """Tell again how documents ended lately: nobody can tell of it when another end has followed."""
        lately = [change.before for change in changes if may_be_untold(change.before, now)]
        try:
            self._services.outcomes.publish(lately)
        except CALL_ERRORS as error:
            LOGGER.warning("%d documents wait until it is told how they ended before: %s", len(lately), error)
            self.problems |= {record.uri: problem_of(error) for record in lately}
        return [change for change in changes if change.before.uri not in self.problems]

    def _as_many_as_there_is_time_for(self, claims: list[Change], now: float) -> list[Change]:
        calls = max(1, int((self._last_call - now) / USUAL_CALL_SECONDS))
        most = calls * self._services.settings.documents_per_call
        for change in claims[most:]:
            self.problems[change.after.uri] = OUT_OF_TIME
        return claims[:most]

    def _observe(self, uris: Sequence[str]) -> dict[str, Observation]:
        """Look at documents for as long as there is time to do something about them."""
        end = (self._services.clock() + self._last_call) / 2
        looked_at = self._services.observer.observe_while(lambda: self._services.clock() < end, uris)
        self.problems |= {uri: OUT_OF_TIME for uri in uris if uri not in looked_at}
        self.problems |= {uri: problem_of(found) for uri, found in looked_at.items() if isinstance(found, Exception)}
        return {uri: found for uri, found in looked_at.items() if isinstance(found, Observation)}

    def _follow_again(self, records: Iterable[DocumentRecord]) -> None:
        """Have documents asked about that somebody wants to be looked at: the message about them may be lost."""
        asked = [r for r in records if r.is_followed and self._seen[r.uri].forced]
        for start in range(0, len(asked), DOCUMENTS_PER_CALL):
            batch = asked[start : start + DOCUMENTS_PER_CALL]
            try:
                self._services.status_queue.send([Letter(follow(batch, checks=0))])
            except CALL_ERRORS as error:
                # What was claimed beside these goes on.
                self.problems |= {record.uri: problem_of(error) for record in batch}

    def _submit(self, claimed: Sequence[DocumentRecord]) -> None:
        settings = self._services.settings
        delay = first_delay(self._services, len(claimed)) if claimed else 0.0
        submitter = Submitter(settings, self._services.agent, self._has_time, sleep=self._services.sleep)
        for submissions in submitter.submit(claimed):
            try:
                self._settle(submissions, delay)
            except CALL_ERRORS as error:
                LOGGER.warning("%d documents were submitted and not noted: %s", len(submissions), error)
                # One that a message of the status queue sees to needs nobody else.
                self._release([s.record.uri for s in submissions if s.record.uri not in self._followed], error)

    def _release(self, uris: Sequence[str], error: Exception) -> None:
        """Give up claims, so that the next delivery can go on at once and counts as one."""
        problem, now = problem_of(error), self._services.clock()
        for uri in uris:
            self.problems.setdefault(uri, problem)
        records = [self._records[uri] for uri in uris if self._records[uri].is_claimed(now)]
        try:
            self._write([Change(record, life.put_back(record, problem.cause, now)) for record in records])
        except CALL_ERRORS as failure:
            LOGGER.warning("%d claims stay until their lease is over: %s", len(records), failure)

    def _has_time(self) -> bool:
        return self._services.clock() < self._last_call

    def _settle(self, submissions: Sequence[Submission], delay: float) -> None:
        """Have what was accepted followed, then note that, and what is to be tried again or removed."""
        now = self._services.clock()
        accepted: list[Change] = []
        put_back: list[Change] = []
        for submission in submissions:
            record, answer = submission.record, submission.answer
            if submission.problem is not None or answer is None:
                problem = submission.problem or Problem("The knowledge base did not answer for the document")
                self.problems[record.uri] = problem
                put_back.append(Change(record, life.put_back(record, problem.cause, now)))
            elif submission.is_refused:
                self.problems[record.uri] = Problem("What is indexed of it must be removed", after_seconds=0.0)
                put_back.append(Change(record, refused(record, told(answer), now)))
            else:
                accepted.append(Change(record, life.accepted(record, now)))
        if accepted:
            self._services.status_queue.send([Letter(follow([change.after for change in accepted], checks=0))], delay)
            self._followed.update(change.after.uri for change in accepted)
        self._write([*put_back, *accepted])
        self._services.metrics.add_metric("DocumentsSubmitted", "Count", len(accepted))

    def _write(self, changes: Sequence[Change]) -> set[str]:
        """Write changes and tell which were written; what another function wrote first has a problem."""
        lost = self._services.registry.write(changes)
        for change in changes:
            uri = change.after.uri
            if uri in lost:
                self.problems[uri] = _LOST_RACE
            else:
                self._records[uri] = replace(change.after, revision=change.before.revision + 1)
        return {change.after.uri for change in changes} - lost

    def _tell(self, uris: Iterable[str]) -> None:
        self._services.outcomes.announce([self._records[uri] for uri in uris])

    def _try_to_tell(self, uris: Sequence[str]) -> None:
        try:
            self._tell(uris)
        except CALL_ERRORS as error:
            LOGGER.warning("The outcome of %d documents was not told: %s", len(uris), error)
            for uri in uris:
                self.problems.setdefault(uri, problem_of(error))


def _step(record: DocumentRecord, observed: Observation, seen: Seen, now: float) -> Step:
    step = life.step_for(record, observed, seen, now)
    if step is Step.DELETE and fault_of_uri(record.uri):
        # The service takes no such URI, so it can neither have been given the document nor be asked to delete it.
        return Step.FAIL if observed.is_present else Step.FORGET
    return step
