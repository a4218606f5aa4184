"""The quotas of an account that decide whether a deployment works, and how fast."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

REQUESTS: Final = "requests per minute"
TOKENS: Final = "tokens per minute"

SLOW_REQUESTS: Final = 600
"""Embeddings a minute below which a load of documents takes days: at 60, six documents of ten chunks a minute."""

FEW_EXECUTIONS: Final = 100
"""Concurrent executions below which functions throttle each other: at least two dozen serve queues and requests."""

_RETRIEVE: Final = ("Retrieve a second", "(Knowledge Bases) Retrieve requests per second")
_MANAGED_RETRIEVE: Final = (
    "Retrieve a minute",
    "(Knowledge Bases) Maximum Retrieve requests per minute, per knowledge base",
)
"""Source: Bedrock user guide, kb-managed-quotas, which does not say what Service Quotas calls it."""

_INGESTION: Final[Mapping[str, str]] = {
    "direct ingestion a second": "(Knowledge Bases) IngestKnowledgeBaseDocuments requests per second",
    "concurrent direct ingestion": "(Knowledge Bases) Concurrent IngestKnowledgeBaseDocuments and"
    " DeleteKnowledgeBaseDocuments requests per account",
}
"""Source: Amazon Bedrock endpoints and quotas. Service Quotas lists some of them without the words in brackets."""

_CONCURRENCY: Final = "Concurrent executions"
"""Source: AWS Lambda endpoints and quotas."""

_SCOPES: Final[Mapping[str, str]] = {"global": "Global cross-region", "": "On-demand"}
"""The first words of a quota of a model by the prefix of an inference profile; those of others: Cross-region."""

_DATE: Final = re.compile(r"20\d{6}")
_UNNAMED: Final = (["cohere", "embed", "english", "v3"], ["cohere", "embed", "multilingual", "v3"])
"""Models whose quotas do not name their version."""


@dataclass(frozen=True)
class Quota:
    """A quota of the account in a Region; *code* identifies it in a request to raise it."""

    service: str
    name: str
    code: str
    value: float
    is_adjustable: bool

    def __str__(self) -> str:
        """Format the quota for people."""
        return f"{self.value:,.10g} ({self.name}, {'adjustable' if self.is_adjustable else 'not adjustable'})"

    def how_to_raise(self, wanted: int) -> str:
        """Return what an operator does to get more."""
        if not self.is_adjustable:
            return (
                "Service Quotas cannot raise it: ask AWS Support for an increase, or use another model, account or"
                " Region"
            )
        return (
            f"`aws service-quotas request-service-quota-increase --service-code {self.service} --quota-code"
            f" {self.code} --desired-value {wanted}`"
        )


def read_quotas(client: Any, service: str) -> list[Quota]:
    """Return the quotas of a service in the client's Region: the account's own values, where it has them.

    Raises:
        ClientError: The caller lacks servicequotas:ListServiceQuotas or servicequotas:ListAWSDefaultServiceQuotas.
    """
    found: dict[str, Quota] = {}
    for operation in ("list_aws_default_service_quotas", "list_service_quotas"):
        for page in client.get_paginator(operation).paginate(ServiceCode=service):
            for each in page["Quotas"]:
                code, name = each["QuotaCode"], each["QuotaName"]
                found[code] = Quota(service, name, code, float(each.get("Value", 0)), bool(each.get("Adjustable")))
    return [*found.values()]


def knowledge_base_quotas(quotas: list[Quota], *, is_managed: bool) -> Iterator[tuple[str, Quota | None, str]]:
    """Yield what is limited, its quota, and the name by which it was looked for; None if there is no such name."""
    by_name = {_words(each.name): each for each in quotas}
    for what, name in (_MANAGED_RETRIEVE if is_managed else _RETRIEVE, *_INGESTION.items()):
        bare = name.partition(") ")[2]
        yield what, by_name.get(_words(name)) or by_name.get(_words(bare)), name


def concurrency(quotas: list[Quota]) -> tuple[Quota | None, str]:
    """Return the quota of concurrent executions of Lambda, and its name."""
    return next((each for each in quotas if _words(each.name) == _words(_CONCURRENCY)), None), _CONCURRENCY


def model_quota(quotas: list[Quota], model_id: str, unit: str) -> tuple[Quota | None, str]:
    """Return the quota of a model, or of an inference profile, and the beginning of its name.

    The names of quotas have the names of models, which differ from their ids in spelling alone: "Amazon Titan Text
    Embeddings V2" is ``amazon.titan-embed-text-v2:0``. A word of the id can be the beginning of one in the name.
    """
    prefix, wanted = _words_of_model(model_id)
    beginning = f"{_SCOPES.get(prefix, 'Cross-region')} model inference {unit}"
    of_models = [each for each in quotas if _words(each.name)[: len(_words(beginning))] == _words(beginning)]
    if wanted in _UNNAMED:
        wanted = wanted[:-1]
    return next((each for each in of_models if _is_of(wanted, each.name)), None), f"{beginning} for {model_id}"


def _words(name: str) -> tuple[str, ...]:
    return tuple(re.findall(r"[a-z0-9]+", name.lower()))


def _words_of_model(model_id: str) -> tuple[str, list[str]]:
    """Return the prefix of an inference profile, and the words of the model's name with its provider."""
    first, *others = model_id.partition(":")[0].split(".")
    prefix = first if len(others) > 1 else ""
    words = [*_words(" ".join(others if prefix else [first, *others]))]
    return prefix, [word for word in words if not _DATE.fullmatch(word) and word != "v1"]


def _is_of(words: list[str], quota_name: str) -> bool:
    """Whether a name is that of a model: each word of its id is a word of the name, or begins one."""
    named = [word for word in _words(re.sub(r"\(.*?\)", "", quota_name.partition(" for ")[2])) if word != "v1"]
    is_complete = len(named) == len(words) and all(any(each.startswith(word) for each in named) for word in words)
    return is_complete or "".join(named) == "".join(words)
