"""What a run cannot try, and why: so that reports name it."""

from collections.abc import Callable
from typing import Final

from ragstack_local.certify.check import Check, Json, NotTried, Source
from ragstack_local.certify.site import Site

TOPIC: Final = "not tried"


def _because(reason: str) -> Callable[[Site], Json]:
    def observe(_: Site) -> Json:
        raise NotTried(reason)

    return observe


def _check(name: str, belief: str, reason: str, used_by: str, source: Source = Source.DOCUMENTATION) -> Check:
    return Check(
        name=name,
        topic=TOPIC,
        belief=belief,
        source=source,
        used_by=used_by,
        expected=None,
        observe=_because(reason),
    )


CHECKS: Final = (
    _check(
        "untried.issuers",
        "Entra ID, Okta and Keycloak issue tokens as they document",
        "it needs an account at each of them",
        "auth=oidc",
    ),
    _check(
        "untried.domains",
        "A domain with its certificate leads to the API and to the console",
        "it needs a domain of the account",
        "api_domain, console_domain",
    ),
    _check(
        "untried.web_acls",
        "A web ACL works in front of routes that stream, and the plan Pro accepts the console's distribution",
        "web ACLs and plans are billed by the month",
        "web_acls, flat-rate plans",
        Source.GUESS,
    ),
    _check(
        "untried.budget",
        "AWS Budgets publishes to the topic",
        "budgets are evaluated a few times a day, and only if money was spent",
        "monthly_budget",
    ),
    _check(
        "untried.key",
        "The key policy in the documentation is enough for a key of your own",
        "a key can be deleted after seven days at the earliest",
        "kms_key_arn",
        Source.GUESS,
    ),
    _check(
        "untried.managed_key",
        "A managed knowledge base takes a key of your own",
        "a key can be deleted after seven days at the earliest",
        "kms_key_arn with knowledge_base=managed",
    ),
    _check(
        "untried.agents",
        "By default, an agent plans three times, at most five searches each, and its results are in pages of 100",
        "it depends on the model how often it searches, and for what",
        "AgenticRetrieveStream of the local Bedrock",
        Source.GUESS,
    ),
    _check(
        "untried.ranks",
        "RRF looks at the best 1,000 of each ranking",
        "it needs thousands of vectors, whose scores differ in the last digits",
        "the local S3 Vectors",
        Source.GUESS,
    ),
    _check(
        "untried.tokens",
        "A nextToken is valid for ten minutes, and errors have the messages of the local Bedrock",
        "AWS promises neither, and clients must not rely on them",
        "the local Bedrock",
        Source.GUESS,
    ),
    _check(
        "untried.sender",
        "A domain that Amazon SES has verified is enough for a sender of invitations",
        "it needs a verified domain of the account",
        "email_sender",
    ),
    _check(
        "untried.network",
        "The functions that search reach a Milvus server in a VPC",
        "it needs a VPC with a server and a NAT gateway, which is billed by the hour",
        "vpc_subnet_ids",
    ),
    _check(
        "untried.references",
        "Fn::GetStackOutput replaces Fn::ImportValue in stacks of earlier versions, without replacing resources",
        "it needs stacks of an earlier version",
        "upgrades",
        Source.GUESS,
    ),
    _check(
        "untried.notifications",
        "Alarms send e-mail after the subscription was confirmed",
        "a person must confirm the subscription",
        "alarm_email",
    ),
    _check(
        "untried.expiry",
        "DynamoDB removes conversations, gaps and people within days after they expire",
        "it takes longer than a run, and they are treated as absent as soon as they expire",
        "conversations, gaps, the list of people",
    ),
    _check(
        "untried.prices",
        "The bill agrees with the costs that the documentation computes",
        "the bill of a day is complete a day later; the report has the numbers of calls",
        "docs/OPERATIONS.md#costs",
        Source.THIRD_PARTY,
    ),
)
