"""A local stack whose functions reach every service through faults, and whose processes can be killed."""

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import urllib3

from tests.e2e.support import LocalStack
from tests.faults.proxy import FaultProxy

VISIBILITY_MARGIN_SECONDS: Final = 8
"""What a killed function had received is delivered again so long after the function's time, not minutes later.

The time between includes the start of a process, which takes seconds on a busy machine.
"""

DIVERTED: Final = ("DYNAMODB", "EVENTBRIDGE", "S3", "SQS")
"""Names of the services in the variables that say where botocore finds each."""

FUNCTION: Final = "POWERTOOLS_SERVICE_NAME"
"""This variable of a function is its name in this project."""

FUNCTIONS: Final = ("ingestion", "converter", "ingestion_status", "receipts", "reconcile", "documents")

RECONCILE_SECONDS: Final = 75
"""What `reconcile` has: it keeps 45 s back for its report, and ends before it has compared anything with less."""

RECONCILE_VARIABLES: Final = {"RECONCILE_SETTLE_SECONDS": "20", "RECONCILE_POLL_SECONDS": "2"}
"""A reconciliation compares what changed more than 20 seconds ago, although its event may still wait."""

QUEUE_READERS: Final = {
    "ingestion": "ingestion",
    "conversions": "converter",
    "large conversions": "converter",
    "status": "ingestion_status",
    "receipts": "receipts",
    "jobs": "reconcile",
}

STACKS: Final = ("RagStackStorage", "RagStackIngestion")

LOG_GROUPS: Final = ("/RagStackIngestion/", "/RagStackApi/DocumentsLogs")

SEARCH_QUOTAS: Final = ("retrieve_per_second", "list_knowledge_base_documents_per_second")
"""Only what checks the end at rest calls these."""


def bedrock_faults(seed: int) -> list[dict[str, Any]]:
    """Say what happens to the calls of the local Bedrock: the same shares as the proxy's."""
    rules: list[dict[str, Any]] = [
        {"kind": "latency", "rate": 0.05, "milliseconds": 100},
        {"kind": "latency", "rate": 0.05, "milliseconds": 300},
        {"kind": "throttling", "rate": 0.10},
        {"kind": "internal", "rate": 0.025},
        {"kind": "unavailable", "rate": 0.025, "when": "after"},
        {"kind": "drop", "rate": 0.01},
        {"kind": "drop", "rate": 0.01, "when": "after"},
        {"kind": "contention", "rate": 0.02, "operation": "Ingest*"},
    ]
    return [{"operation": "*", **rule, "seed": seed + number} for number, rule in enumerate(rules)]


@dataclass(frozen=True)
class Places:
    """Where the parts of a running stack are, and clients that reach them without any fault."""

    stack: LocalStack
    outputs: Mapping[str, str]
    _clients: dict[str, Any] = field(default_factory=dict)

    @property
    def bucket(self) -> str:
        return self.stack.connection.bucket

    @property
    def table(self) -> str:
        return self.outputs["RegistryTableName"]

    @property
    def queues(self) -> dict[str, str]:
        """Queues that must be empty at rest."""
        names = {
            "ingestion": "IngestionQueueUrl",
            "status": "StatusQueueUrl",
            "conversions": "ConversionQueueUrl",
            "large conversions": "LargeConversionQueueUrl",
            "receipts": "ReceiptsQueueUrl",
            "jobs": "JobsQueueUrl",
        }
        return {name: self.outputs[output] for name, output in names.items()}

    @property
    def dead_letter_queue(self) -> str:
        return self.outputs["DeadLetterQueueUrl"]

    @property
    def knowledge_base(self) -> dict[str, str]:
        connection = self.stack.connection
        return {"knowledgeBaseId": connection.knowledge_base_id, "dataSourceId": connection.data_source_id}

    def client(self, service: str) -> Any:
        if service not in self._clients:
            self._clients[service] = self.stack.connection.client(service)
        return self._clients[service]


class FaultyStack(LocalStack):
    """A local stack with AWS's quotas, whose faults can be switched on and off."""

    bedrock_options = ("--quotas", *(f"--quota={name}=off" for name in SEARCH_QUOTAS), "--admin")

    @property
    def places(self) -> Places:
        cloudformation = self.connection.client("cloudformation")
        outputs = {
            output["OutputKey"]: output["OutputValue"]
            for name in STACKS
            for output in cloudformation.describe_stacks(StackName=name)["Stacks"][0].get("Outputs", [])
        }
        return Places(self, outputs)

    def divert(self, proxy: FaultProxy, timeout_seconds: int, names: Collection[str] = FUNCTIONS) -> None:
        """Let functions reach AWS through *proxy*, in little time.

        Args:
            proxy: In front of AWS.
            timeout_seconds: Of each function but `reconcile`.
            names: Which functions.
        """
        functions = self.connection.client("lambda")
        endpoints = {f"AWS_ENDPOINT_URL_{service}": proxy.url for service in DIVERTED}
        seconds = {name: RECONCILE_SECONDS if name == "reconcile" else timeout_seconds for name in names}
        diverted = set()
        for function in functions.list_functions()["Functions"]:
            variables = function["Environment"]["Variables"]
            name = variables.get(FUNCTION)
            if name not in names:
                continue
            more = RECONCILE_VARIABLES if name == "reconcile" else {}
            functions.update_function_configuration(
                FunctionName=function["FunctionName"],
                Timeout=seconds[name],
                Environment={"Variables": variables | endpoints | more},
            )
            diverted.add(name)
        assert diverted == {*names}, f"only {diverted} were diverted"
        sqs, places = self.connection.client("sqs"), self.places
        for queue, url in places.queues.items():
            if (reader := QUEUE_READERS[queue]) in seconds:
                visibility = str(seconds[reader] + VISIBILITY_MARGIN_SECONDS)
                sqs.set_queue_attributes(QueueUrl=url, Attributes={"VisibilityTimeout": visibility})
            # S3's test events, whose function was just ended, would come again after twelve minutes.
            sqs.purge_queue(QueueUrl=url)

    @contextmanager
    def faults_in_bedrock(self, seed: int) -> Iterator[None]:
        """Let calls of the local Bedrock fail for as long as the context lasts."""
        self._administer("PUT", "faults", {"rules": bedrock_faults(seed)})
        try:
            yield
        finally:
            self._administer("DELETE", "faults")

    def happened_in_bedrock(self) -> dict[str, int]:
        """Count the faults so far, by kind."""
        counts: dict[str, int] = {}
        for rule in self._administer("GET", "faults")["rules"]:
            name = rule["kind"] + (" after" if rule["when"] == "after" else "")
            counts[name] = counts.get(name, 0) + rule["happened"]
        return counts

    def function_logs(self) -> Iterator[str]:
        """Read what the functions of the ingestion path logged, oldest first; what a killed one had to say is lost."""
        logs = self.connection.client("logs")
        lines = [
            (event["timestamp"], group["logGroupName"], event["message"])
            for group in logs.describe_log_groups()["logGroups"]
            if any(part in group["logGroupName"] for part in LOG_GROUPS)
            for stream in logs.describe_log_streams(logGroupName=group["logGroupName"])["logStreams"]
            for event in logs.get_log_events(
                logGroupName=group["logGroupName"], logStreamName=stream["logStreamName"], startFromHead=True
            )["events"]
        ]
        return (f"{at} {group} {message}" for at, group, message in sorted(lines))

    def calls_of_bedrock(self) -> dict[str, Any]:
        """Read what the local Bedrock counted, by operation."""
        return dict(self._administer("GET", "metrics")["operations"])

    def _administer(self, method: str, what: str, body: Any = None) -> Any:
        answer = urllib3.request(method, f"{self.connection.bedrock_endpoint}/_ragstack/{what}", json=body)
        assert answer.status == 200, answer.data
        return answer.json()
