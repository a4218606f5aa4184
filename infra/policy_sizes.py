"""The sizes of IAM policies, which grow with tenants and collections, and are known after synthesis."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from infra.checks import partition
from infra.options import OptionError

MAX_INLINE_CHARACTERS: Final = 10_240
MAX_MANAGED_CHARACTERS: Final = 6_144
MAX_MANAGED_POLICIES: Final = 10
"""Source: IAM quotas: all inline policies of a role, each managed policy without white space, and their number."""

LONGEST_REGION: Final = "ap-southeast-1"
"""Of the Regions of the partition ``aws``, for a deployment whose Region is not known."""

LENGTHS: Final[Mapping[str, int]] = {
    "KnowledgeBaseId": 10,
    "DataSourceId": 10,
    "Bucket": 63,
    "Arn": 130,
}
"""Characters of values that a deployment decides, by what is in their names; the ARN of a queue has the most."""


def check_policies(assembly: Path, region: str | None) -> None:
    """Check the sizes of all policies in the templates of an assembly, with their values in *region*.

    Raises:
        OptionError: IAM would refuse one; the message names the role.
    """
    region = region or LONGEST_REGION
    pseudo = {"AWS::Region": region, "AWS::Partition": partition(region), "AWS::AccountId": "123456789012"}
    for file in sorted(assembly.glob("*.template.json")):
        inline: Counter[str] = Counter()
        attached: Counter[str] = Counter()
        for name, resource in json.loads(file.read_text(encoding="utf-8"))["Resources"].items():
            inline.update(dict(_inline_sizes(name, resource, pseudo)))
            if resource["Type"] == "AWS::IAM::ManagedPolicy":
                size = len(_resolved(resource["Properties"]["PolicyDocument"], pseudo))
                _check(name, size, MAX_MANAGED_CHARACTERS)
                attached.update(_roles(resource))
        for role, size in inline.items():
            _check(role, size, MAX_INLINE_CHARACTERS)
        for role, number in attached.items():
            if number > MAX_MANAGED_POLICIES:
                raise OptionError(
                    f"the role {role} has {number} managed policies, and IAM takes {MAX_MANAGED_POLICIES}: deploy with"
                    " fewer tenants or collections"
                )


def _check(name: str, size: int, limit: int) -> None:
    if size <= limit:
        return
    raise OptionError(
        f"the policies of {name} have about {size:,} characters in this Region, and IAM takes {limit:,}: deploy with"
        " fewer tenants or collections"
    )


def _inline_sizes(name: str, resource: Mapping[str, Any], pseudo: Mapping[str, str]) -> Iterator[tuple[str, int]]:
    properties = resource.get("Properties", {})
    if resource["Type"] == "AWS::IAM::Role":
        for policy in properties.get("Policies", ()):
            yield name, len(_resolved(policy["PolicyDocument"], pseudo))
    elif resource["Type"] == "AWS::IAM::Policy":
        for role in _roles(resource):
            yield role, len(_resolved(properties["PolicyDocument"], pseudo))


def _roles(resource: Mapping[str, Any]) -> list[str]:
    return [role["Ref"] for role in resource["Properties"].get("Roles", ()) if "Ref" in role]


def _resolved(value: Any, pseudo: Mapping[str, str]) -> str:
    """Return a policy as IAM counts it, with stand-ins for what only the deployment knows."""

    def fill(part: Any) -> Any:
        match part:
            case {"Fn::Join": [str(separator), list(parts)]}:
                return separator.join(map(str, map(fill, parts)))
            case {"Ref": str(name)} if name in pseudo:
                return pseudo[name]
            case {"Ref": _} | {"Fn::GetAtt": _} | {"Fn::GetStackOutput": _} | {"Fn::ImportValue": _}:
                named = json.dumps(part)
                return "x" * next((length for mark, length in LENGTHS.items() if mark in named), 64)
            case dict():
                return {name: fill(each) for name, each in part.items()}
            case list():
                return [fill(each) for each in part]
        return part

    return json.dumps(fill(value), separators=(",", ":"))
