"""The settings of the function `reconcile`."""

from collections.abc import Mapping
from dataclasses import dataclass

from ragstack_common import config
from ragstack_common.environment import not_negative, optional, required
from ragstack_common.ingestion.settings import PathSettings


@dataclass(frozen=True, kw_only=True)
class ReconcileSettings(PathSettings):
    """How the three are compared, and how a synchronisation is followed.

    Attributes:
        documents_bucket: The bucket that the data source reads.
        jobs_queue_url: Where jobs wait for their next step.
        settle_seconds: How old an object must be, at least, for its event to count as lost, 0 or more.
        stuck_seconds: How long after its time a document on its way counts as stuck, over 0.
        poll_seconds: Between two steps of a synchronisation, 0 to 900.
        wait_seconds: How long a synchronisation waits for its turn, over 0.
        follow_seconds: How long Bedrock's job may take, over 0.
    """

    documents_bucket: str
    jobs_queue_url: str
    settle_seconds: float = 60.0
    stuck_seconds: float = 1800.0
    poll_seconds: float = 15.0
    wait_seconds: float = 2 * 3600.0
    follow_seconds: float = 24 * 3600.0

    @classmethod
    def from_env(cls, env: Mapping[str, str]) -> "ReconcileSettings":
        """Read the settings.

        Raises:
            ConfigurationError: A variable is missing or unusable; the message names it.
        """
        return cls(
            **cls._shared(env),
            documents_bucket=required(env, config.DOCUMENTS_BUCKET),
            jobs_queue_url=required(env, config.JOBS_QUEUE_URL),
            settle_seconds=optional(env, config.RECONCILE_SETTLE_SECONDS, not_negative(float), cls.settle_seconds),
            poll_seconds=optional(env, config.RECONCILE_POLL_SECONDS, not_negative(float), cls.poll_seconds),
        )
