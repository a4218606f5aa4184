"""The function `ingestion`: from queued messages to documents that the knowledge base has accepted.

What lies in the bucket decides what is done, whatever the events say, in whatever order and however often they come.
A message counts as done only when a final state is written, or a message of the status queue will see to the rest.
"""

from collections.abc import Iterable, Mapping, Sequence

from ragstack_common.errors import InvalidDocumentError
from ragstack_common.ingestion.messages import QueueMessage, both, look, read_looks
from ragstack_common.ingestion.problems import Problem, Remedy, problem_of, worst
from ragstack_common.ingestion.queues import FIRST_PAUSE_SECONDS, Letter
from ragstack_common.ingestion.services import CALL_ERRORS, Services
from ragstack_common.ingestion.work import WAITING_SECONDS, Work
from ragstack_common.registry.life import Seen
from ragstack_common.telemetry import LOGGER


class IngestionService:
    """Submits what lies in the bucket, and deletes what no longer does."""

    def __init__(self, services: Services) -> None:
        """Bind what it works with."""
        self._services = services

    def process(self, messages: Sequence[QueueMessage], seconds_left: float) -> list[str]:
        """Carry out what the messages ask for.

        Args:
            messages: Of the ingestion queue.
            seconds_left: Until the function is ended; as long, nobody else takes its documents over.

        Returns:
            The ids of the messages that must be delivered again. A message that cannot succeed, or was delivered
            often enough, is in the dead-letter queue with its cause, and its documents are FAILED.
        """
        looks: dict[str, Mapping[str, Seen]] = {}
        unreadable: dict[str, Problem] = {}
        for message in messages:
            try:
                looks[message.message_id] = read_looks(message.body)
            except InvalidDocumentError as error:
                unreadable[message.message_id] = problem_of(error)
        work = Work(self._services, _merged(looks.values()), self._services.clock() + seconds_left)
        work.carry_out({uri for m in messages if m.receives > 1 for uri in looks.get(m.message_id, ())})
        again = []
        for message in messages:
            uris = looks.get(message.message_id, {})
            found = [work.problems[uri] for uri in uris if uri in work.problems]
            problem = unreadable.get(message.message_id) or (worst(found) if found else None)
            if problem is not None and self._comes_again(message, problem, work, uris):
                again.append(message.message_id)
        self._services.metrics.add_metric("MessagesRetried", "Count", len(again))
        return again

    def _comes_again(self, message: QueueMessage, problem: Problem, work: Work, uris: Mapping[str, Seen]) -> bool:
        """Decide about a message with a problem: True to have it delivered again."""
        queue = self._services.ingestion_queue
        if self._is_done_but_for(message, work, uris, problem):
            return False
        if problem.remedy is Remedy.ANOTHER_DELIVERY and message.receives < self._services.settings.max_receives:
            LOGGER.warning("message %s will be delivered again: %s", message.message_id, problem.cause)
            queue.give_back(message, problem.after_seconds)
            return True
        try:
            if problem.remedy is Remedy.WAITING:
                LOGGER.info("message %s is sent anew, to wait: %s", message.message_id, problem.cause)
                queue.send([Letter(message.body)], problem.after_seconds or WAITING_SECONDS)
                return False
            LOGGER.error("message %s goes to the dead-letter queue: %s", message.message_id, problem.cause)
            if not work.give_up(uris):
                self._services.dead_letters.send([Letter(message.body, problem.cause)])
        except CALL_ERRORS as error:
            LOGGER.error("message %s could be neither sent anew nor put aside: %s", message.message_id, error)
            queue.give_back(message)
            return True
        self._services.metrics.add_metric("MessagesDeadLettered", "Count", 1)
        return False

    def _is_done_but_for(self, message: QueueMessage, work: Work, uris: Mapping[str, Seen], problem: Problem) -> bool:
        """Have those documents alone looked at again that a request to look at several did not get done.

        Another delivery would submit the others once more.
        """
        left = [uri for uri in uris if uri in work.problems]
        if not left or len(left) == len(uris) or any(s.sequencer or s.sidecar_sequencer for s in uris.values()):
            return False
        try:
            wait = problem.after_seconds if problem.after_seconds is not None else FIRST_PAUSE_SECONDS
            self._services.ingestion_queue.send([Letter(look(left, forced=uris[left[0]].forced))], wait)
        except CALL_ERRORS as error:
            LOGGER.warning("message %s is delivered again as a whole: %s", message.message_id, error)
            return False
        return True


def _merged(several: Iterable[Mapping[str, Seen]]) -> dict[str, Seen]:
    merged: dict[str, Seen] = {}
    for seen in several:
        for uri, one in seen.items():
            merged[uri] = both(merged[uri], one) if uri in merged else one
    return merged
