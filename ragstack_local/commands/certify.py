"""``ragstack certify``: compare what the project believes of AWS with an account, or with the local stack."""

from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from rich.text import Text

from ragstack_common.settings.names import MANAGED_REGIONS
from ragstack_local.connection.connection import LOCAL_REGION, Connection, Project, local_session
from ragstack_local.connection_options import confirm, leave_local_settings
from ragstack_local.errors import FAILED, INTERRUPTED, StackError
from ragstack_local.show import display

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ragstack_local.certify.check import Check, Outcome
    from ragstack_local.certify.journal import Resource
    from ragstack_local.certify.site import Place

JOURNALS: Final = "certify"
"""Subfolder of the data folder for the journals of runs."""

_STYLES: Final = {"matches": "green", "differs": "bold red", "not tried": "yellow"}


def certify(
    aws: Annotated[
        bool, typer.Option("--aws", help="Use the AWS account of the AWS settings instead of the local stack.")
    ] = False,
    bedrock: Annotated[
        str | None,
        typer.Option(
            metavar="URL", help="Use the local Bedrock at this URL instead of a local stack. Needs --s3-endpoint."
        ),
    ] = None,
    s3_endpoint: Annotated[
        str | None, typer.Option(metavar="URL", help="The S3 endpoint that this local Bedrock reads from.")
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PATTERN", help="Try only the checks whose name or topic matches, such as 'filters.*'. Repeatable."
        ),
    ] = None,
    list_: Annotated[bool, typer.Option("--list", help="List the checks without running them.")] = False,
    output: Annotated[Path, typer.Option(help="The folder for the report.", file_okay=False)] = Path("certificates"),
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask before creating resources on AWS.")] = False,
    clean_up: Annotated[
        bool, typer.Option("--clean-up", help="Remove what interrupted runs left behind, and run no checks.")
    ] = False,
) -> None:
    """Check what this project assumes about AWS, and report what matches and what differs.

    On AWS, this creates resources of its own, whose names begin with ragstack-certify or RagStackCertify, and removes
    them afterwards. The report has no account ids, names or content. The exit code is 3 if something differs.

    Example:  ragstack certify

    In an AWS account, for about a dollar, within 45 minutes:  ragstack certify --aws
    """
    from ragstack_local.certify import run  # noqa: PLC0415 - help does without
    from ragstack_local.certify.catalogue import chosen  # noqa: PLC0415
    from ragstack_local.stack.processes import raised_interrupts  # noqa: PLC0415

    checks = chosen(tuple(only or ()))
    if not checks:
        raise typer.BadParameter(
            f"no check is called {' or '.join(only or ())}: --list names them", param_hint="--only"
        )
    if list_:
        _show_list(checks)
        return
    session, place, connection = _site(aws=aws, bedrock=bedrock, s3_endpoint=s3_endpoint)
    journals = Project.find().data / JOURNALS
    if clean_up:
        count, left, elsewhere = run.clean_up(session, place, journals, cleaning=_show_removal)
        display.console.print(f"Removed {display.counted(count, 'resource')} of earlier runs")
        for each in elsewhere:
            display.console.print(
                f"A run has left resources in the account {each}: use `ragstack certify --aws --clean-up` there",
                soft_wrap=True,
            )
        _fail_for(left, is_aws=place.is_aws)
        return
    if place.is_aws:
        _prepare(session, place, checks, asks=not yes)
    output.mkdir(parents=True, exist_ok=True)
    with TemporaryFile(dir=output):  # a report must not be lost after the run
        pass
    with raised_interrupts():
        report, left, is_interrupted = run.certify(
            session, place, checks, journals, connection=connection, show=_show, cleaning=_show_removal
        )
    name = f"aws-{place.region}-{report.started[:10]}" if place.is_aws else "local"
    try:
        markdown, _ = report.write(output, name)
    except OSError as error:
        display.console.print(report.to_json_text(), markup=False, highlight=False, soft_wrap=True)
        display.errors.print(f"The report cannot be written, and is printed instead: {error}", soft_wrap=True)
        _fail_for(left, is_aws=place.is_aws)
        raise
    counts = ", ".join(f"{count} {verdict}" for verdict, count in report.counts.items())
    display.console.print()
    display.console.print(f"{counts}. Report: {markdown}", soft_wrap=True)
    _fail_for(left, is_aws=place.is_aws)
    if is_interrupted:
        raise typer.Exit(INTERRUPTED)
    if any(outcome.verdict == "differs" for outcome in report.outcomes):
        raise typer.Exit(FAILED)


def _site(*, aws: bool, bedrock: str | None, s3_endpoint: str | None) -> "tuple[Any, Place, Connection | None]":
    """Return the session, the place and the local stack of a run."""
    from ragstack_local.certify.site import Place  # noqa: PLC0415 - help does without

    if aws:
        if bedrock is not None or s3_endpoint is not None:
            raise typer.BadParameter("--aws uses an account, not a local Bedrock", param_hint="--aws")
        return (*_account(), None)
    if (bedrock is None) != (s3_endpoint is None):
        raise typer.BadParameter("--bedrock and --s3-endpoint need each other", param_hint="--bedrock")
    if bedrock is not None and s3_endpoint is not None:
        connection, other = None, s3_endpoint
    else:
        connection = Connection.from_running_stack(Project.find().running)
        bedrock, other = str(connection.bedrock_endpoint), str(connection.aws_endpoint)
    services = ("bedrock-agent", "bedrock-agent-runtime", "bedrock-runtime", "s3vectors")
    endpoints = {"": other, **dict.fromkeys(services, bedrock)}
    return local_session(), Place(LOCAL_REGION, endpoints=endpoints), connection


def _account() -> "tuple[Any, Place]":
    """Return a session of boto3, and the account and the Region of the AWS settings.

    Raises:
        StackError: There are no credentials, or the Region is missing or unknown.
    """
    import boto3  # noqa: PLC0415 - slow to import
    from botocore.exceptions import NoCredentialsError  # noqa: PLC0415

    from ragstack_local.certify.site import Place  # noqa: PLC0415

    leave_local_settings()
    session = boto3.Session()
    region = session.region_name
    if not region:  # STS answers without one too
        raise StackError("--aws needs a Region: set AWS_DEFAULT_REGION, or `region` in your AWS profile")
    if region not in session.get_available_regions("bedrock", session.get_partition_for_region(region)):
        raise StackError(
            f"Amazon Bedrock is not in the Region {region}, as far as the installed botocore knows: set"
            " AWS_DEFAULT_REGION to another one, or update botocore"
        )
    try:
        account = session.client("sts").get_caller_identity()["Account"]
    except NoCredentialsError as error:
        raise StackError(f"--aws needs AWS credentials: {error}") from None
    return session, Place(region, account)


def _prepare(session: Any, place: "Place", checks: "Sequence[Check]", *, asks: bool) -> None:
    """Say what a run on AWS will create and what it cannot try, and ask before resources are created.

    Raises:
        StackError: The caller lacks rights, or there is nothing to try.
    """
    from ragstack_local.certify.catalogue import SERVICES  # noqa: PLC0415 - help does without
    from ragstack_local.certify.costs import EXPECTED, EXPECTED_OF_STACKS  # noqa: PLC0415
    from ragstack_local.certify.site import PREFIX, RUN_SECONDS  # noqa: PLC0415

    created, costs = [], dict[str, float]()
    if any(check in SERVICES for check in checks):
        _check_services(session, place)
        created.append(
            f"two buckets, a vector bucket with eleven indexes, five knowledge bases and a role, named {PREFIX}-*"
        )
        costs |= EXPECTED
    if any(check not in SERVICES for check in checks):
        obstacle = _obstacle_to_stacks(session, place)
        if not obstacle:
            created.append(f"the stacks of the project, named RagStackCertify*, and four small ones, named {PREFIX}-*")
            costs |= EXPECTED_OF_STACKS
        elif created:
            _warn(f"The checks of the stacks will not be tried: {obstacle}")
        else:
            raise StackError(f"The stacks cannot be deployed: {obstacle}")
    parts = ", ".join(f"{part} ${dollars:.2f}" for part, dollars in costs.items())
    display.console.print(
        f"In the account {place.account}, Region {place.region}, this run creates up to {'; '.join(created)}. It"
        f" removes all of them afterwards. Estimated cost: at most ${sum(costs.values()):.2f} ({parts}). Time: at most"
        f" {RUN_SECONDS / 60:.0f} minutes, plus the removal",
        soft_wrap=True,
    )
    if asks:
        confirm("Create these resources?")


def _check_services(session: Any, place: "Place") -> None:
    """Check what the checks of the services need.

    Raises:
        StackError: The caller lacks rights.
    """
    from ragstack_local.certify.rights import missing_rights  # noqa: PLC0415 - help does without

    missing = missing_rights(session, place, session.client("sts", place.region).get_caller_identity()["Arn"])
    if missing:
        raise StackError(f"The caller lacks {', '.join(missing)} (docs/CERTIFICATES.md#rights)")
    if missing is None:
        _warn("The rights of the caller cannot be read: checks for which it lacks a right will not be tried")
    if place.region not in MANAGED_REGIONS:
        _warn(f"{place.region} has no managed knowledge bases: their checks will not be tried")


def _warn(text: str) -> None:
    display.console.print(text, style="yellow", soft_wrap=True)


def _obstacle_to_stacks(session: Any, place: "Place") -> str:
    """Return why the stacks cannot be deployed; empty if they can."""
    from botocore.exceptions import ClientError  # noqa: PLC0415 - help does without

    from ragstack_local.certify.check import NotTried  # noqa: PLC0415
    from ragstack_local.certify.deployed.stacks import deployable_project  # noqa: PLC0415
    from ragstack_local.certify.site import described  # noqa: PLC0415

    try:
        deployable_project(session.client("cloudformation", place.region))
    except NotTried as error:
        return str(error)
    except ClientError as error:
        return described(error)
    return ""


def _show_list(checks: "Sequence[Check]") -> None:
    """Print names and beliefs, with a blank line between the groups of the first parts of the names."""
    groups: dict[str, list[Check]] = {}
    for check in checks:
        groups.setdefault(check.name.partition(".")[0], []).append(check)
    for number, group in enumerate(groups.values()):
        if number:
            display.console.print()
        width = max(len(check.name) for check in group)
        for check in group:
            line = Text.assemble((f"{check.name:{width}}", "bold"), f"  {check.belief}")
            display.console.print(line, soft_wrap=True)


def _show(outcome: "Outcome") -> None:
    line = Text.assemble((f"{outcome.verdict:9}", _STYLES[outcome.verdict]), f" {outcome.check.name}")
    if outcome.verdict == "differs":
        line.append(f": expected {outcome.check.expected}, observed {outcome.observed}")
    elif outcome.reason:
        line.append(f": {outcome.reason}")
    if outcome.seconds:
        line.append(f"  {outcome.seconds:g} s", "dim")
    display.console.print(line, soft_wrap=True)


def _show_removal(resource: "Resource") -> None:
    display.console.print(f"Removing the {resource.kind} {resource.name}", style="dim", soft_wrap=True)


def _fail_for(left: "list[tuple[Resource, str]]", *, is_aws: bool) -> None:
    """Report what could not be removed.

    Raises:
        StackError: Something is left.
    """
    if left:
        for resource, reason in left:
            display.console.print(f"The {resource.kind} {resource.name} is left: {reason}", soft_wrap=True)
        raise StackError(
            f"Not everything was removed: try again with `ragstack certify --clean-up{' --aws' if is_aws else ''}`"
        )
