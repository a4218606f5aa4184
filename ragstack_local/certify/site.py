"""The site of a run: an AWS account, or the local stack, with the names and the journal of the run."""

import re
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, TypeVar

from botocore.config import Config
from botocore.exceptions import ClientError, EndpointConnectionError

from ragstack_local.certify.check import CHECK_SECONDS, Json, NotTried
from ragstack_local.certify.journal import FOREIGN, PLANNED, REMOVED, Journal, Resource

if TYPE_CHECKING:
    from ragstack_local.connection.connection import Connection

T = TypeVar("T")

PREFIX: Final = "ragstack-certify"
RUN_SECONDS: Final = 45 * 60.0
POLL_SECONDS: Final = 0.1
AWS_POLL_SECONDS: Final = 2.0
ATTEMPTS: Final = 5

REFUSALS: Final = re.compile(
    "AccessDenied|UnauthorizedOperation|UnrecognizedClient|^Expired|RequestExpired|InvalidClientToken|InvalidAccessKeyId"
    "|InvalidSignature|SignatureDoesNotMatch|IncompleteSignature|RequestTimeTooSkewed|MissingAuthenticationToken"
    "|OptInRequired|^InvalidToken$"
)
"""In codes of errors that say something about the caller, its credentials or its clock, not about the service."""


@dataclass(frozen=True)
class Place:
    """Where a run creates its resources.

    Attributes:
        region: The Region; that of the local stack too.
        account: The account's id; empty for the local stack.
        endpoints: URLs by the name of the service; empty on AWS. ``""`` is for all others.
    """

    region: str
    account: str = ""
    endpoints: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_aws(self) -> bool:
        """Whether it is an AWS account."""
        return not self.endpoints

    @property
    def fields(self) -> dict[str, str]:
        """What the journal keeps of the place."""
        return {"region": self.region, "account": self.account, **self.endpoints}

    def endpoint(self, service: str) -> str | None:
        """Return the URL of a service; None on AWS."""
        return self.endpoints.get(service, self.endpoints.get("")) if self.endpoints else None


class FixtureError(NotTried):
    """What a check needs could not be made; the cause is the error."""


class Site:
    """What checks work with: clients, shared fixtures, waiting, and the journal.

    Attributes:
        token: The run's own, in the names of all its resources.
        connection: The local stack; None on AWS, or if only a local Bedrock is tried.
        calls: Counts the calls of the run, by ``SERVICE.OPERATION``.
        statuses: Statuses of documents that were seen, by the id of their knowledge base.
    """

    def __init__(
        self,
        session: Any,
        place: Place,
        token: str,
        journal: Journal,
        *,
        connection: "Connection | None" = None,
        seconds: float = RUN_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.place = place
        self.token = token
        self.journal = journal
        self.connection = connection
        self.calls: Counter[str] = Counter()
        self.statuses: defaultdict[str, set[str]] = defaultdict(set)
        self.clock = clock
        self.stopping = threading.Event()
        self._ends = clock() + seconds
        self._session = session
        self._clients: dict[Any, Any] = {}
        self._made: dict[Callable[[Site], Any], Any] = {}
        self._locks: dict[Callable[[Site], Any], threading.Lock] = {}
        self._numbers: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._of_thread = threading.local()

    @property
    def is_aws(self) -> bool:
        """Whether the run is in an AWS account."""
        return self.place.is_aws

    @property
    def region(self) -> str:
        """The Region of the run."""
        return self.place.region

    @property
    def partition(self) -> str:
        """The partition of the Region, in ARNs."""
        return str(self._session.get_partition_for_region(self.region))

    @property
    def stack_prefix(self) -> str:
        """The first part of the names of stacks."""
        return f"RagStackCertify{self.token.capitalize()}"

    def name(self, part: str = "") -> str:
        """Return a name of the run for a resource: ``ragstack-certify-TOKEN-PART``."""
        return "-".join(filter(None, (PREFIX, self.token, part)))

    def unused(self, part: str) -> str:
        """Return a part of a name that no other call has returned: a check may run more than once."""
        with self._lock:
            self._numbers[part] += 1
            return f"{part}-{self._numbers[part]}"

    def client(
        self, service: str, *, region: str | None = None, validates: bool = True, attempts: int = ATTEMPTS
    ) -> Any:
        """Return a boto3 client, which counts its calls and ends with the run.

        Args:
            service: Its name.
            region: Another Region than that of the run.
            validates: Whether botocore checks the parameters; not for requests that the service must refuse.
            attempts: How often a call is tried.
        """
        key = (service, region, validates, attempts)
        with self._lock:
            if key not in self._clients:
                config = Config(
                    retries={"mode": "standard", "total_max_attempts": attempts},
                    parameter_validation=validates,
                    connect_timeout=10.0,
                    read_timeout=90.0,
                    max_pool_connections=32,
                    proxies=None if self.is_aws else {},
                )
                made = self._session.client(
                    service, region or self.region, endpoint_url=self.place.endpoint(service), config=config
                )
                made.meta.events.register("before-call", self._before_call)
                self._clients[key] = made
            return self._clients[key]

    def _before_call(self, model: Any, **_: Any) -> None:
        if self.stopping.is_set():
            raise NotTried("the run was interrupted")
        self.calls[f"{model.service_model.service_name}.{model.name}"] += 1

    def shared(self, make: "Callable[[Site], T]") -> T:
        """Return a fixture that checks share, made by the first one that needs it.

        Raises:
            FixtureError: It could not be made, now or before.
        """
        start = self.clock()
        with self._lock:
            lock = self._locks.setdefault(make, threading.Lock())
        with lock:
            if make not in self._made:
                what = (make.__doc__ or make.__name__).partition("\n")[0].rstrip(".")
                with self.within(RUN_SECONDS):
                    try:
                        self._made[make] = make(self)
                    except FixtureError as error:
                        self._made[make] = error
                    except NotTried as error:
                        self._made[make] = FixtureError(f"{what}: {error}")
                    except Exception as error:  # noqa: BLE001 - it is the reason of every check that needs this
                        self._made[make] = failed = FixtureError(f"{what}: {described(error)}")
                        failed.__cause__ = error
            found = self._made[make]
        if getattr(self._of_thread, "ends", None) is not None:  # the time was not that of the check
            self._of_thread.ends += self.clock() - start
        if isinstance(found, FixtureError):
            raise found
        result: T = found
        return result

    @contextmanager
    def creating(self, kind: str, name: str, within: str = "") -> Iterator[None]:
        """Write a resource into the journal, and create it in the block, which does nothing else.

        A resource whose creation is refused is not the run's own, and is never removed: it may have existed before. But
        a second attempt can be refused because the first one, whose answer was lost, has created it.
        """
        resource = Resource(kind, name, within)
        self.journal.note(resource, PLANNED)
        try:
            yield
        except ClientError as error:
            answer = error.response["ResponseMetadata"]
            is_final = answer["HTTPStatusCode"] < HTTPStatus.INTERNAL_SERVER_ERROR
            if is_final and not answer.get("RetryAttempts"):
                self.journal.note(resource, FOREIGN)
            raise
        except EndpointConnectionError:  # the Region does not have the service
            self.journal.note(resource, FOREIGN)
            raise

    def removed(self, kind: str, name: str, within: str = "") -> None:
        """Write into the journal that a resource is gone."""
        self.journal.note(Resource(kind, name, within), REMOVED)

    @contextmanager
    def within(self, seconds: float) -> Iterator[None]:
        """Limit how long :meth:`eventually` waits in this thread."""
        before = getattr(self._of_thread, "ends", None)
        self._of_thread.ends = self.clock() + seconds
        try:
            yield
        finally:
            self._of_thread.ends = before

    def remaining_seconds(self) -> float:
        """Return how long this thread may still wait: the rest of the check and of the run."""
        ends = getattr(self._of_thread, "ends", None) or self.clock() + CHECK_SECONDS
        return float(min(ends, self._ends) - self.clock())

    def require_time(self) -> None:
        """Raise NotTried if the time of the check or of the run is over, or the run was interrupted."""
        if self.stopping.is_set():
            raise NotTried("the run was interrupted")
        if self.remaining_seconds() <= 0:
            raise NotTried("out of time")

    def pause(self, seconds: float) -> None:
        """Wait, at most as long as there is time."""
        self.stopping.wait(max(0.0, min(seconds, self.remaining_seconds())))
        self.require_time()

    def eventually(self, look: Callable[[], T], what: str, seconds: float | None = None) -> T:
        """Call *look* until it returns something true, and return that.

        Raises:
            NotTried: There is no time left; the message says what did not happen.
            TimeoutError: *seconds* are over.
        """
        start = self.clock()
        while not (found := look()):
            if seconds is not None and self.clock() - start > seconds:
                raise TimeoutError(what)
            try:
                self.pause(AWS_POLL_SECONDS if self.is_aws else POLL_SECONDS)
            except NotTried as error:
                raise NotTried(f"{error}, waiting for {what}") from None
        result: T = found
        return result


def is_refused(error: ClientError) -> bool:
    """Whether an error says something about the caller, not about the service."""
    return REFUSALS.search(error.response["Error"]["Code"]) is not None


def described(error: Exception) -> str:
    """Describe an error without its message, which may name resources and accounts."""
    if isinstance(error, ClientError):
        return f"{error.operation_name} answers {error.response['Error']['Code']}"
    return type(error).__name__


def error_code(call: Callable[[], object]) -> Json:
    """Return ``{"error": CODE}`` of a call that AWS refuses, and ``"accepted"`` of another.

    Codes of errors within a stream begin with a small letter; here they don't.

    Raises:
        ClientError: The caller may not call it.
    """
    try:
        call()
    except ClientError as error:
        if is_refused(error):
            raise
        code = error.response["Error"]["Code"]
        return {"error": f"{code[:1].upper()}{code[1:]}"}
    return "accepted"
