"""Start and stop the local stack."""

import json
import os
import shutil
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import asdict, dataclass, field, replace
from http import HTTPStatus
from itertools import combinations
from pathlib import Path
from typing import Final, NoReturn

import urllib3

from local_bedrock.http.guard import PRIVATE_UMASK
from local_bedrock.options import DEFAULT_PORT as DEFAULT_BEDROCK_PORT
from local_bedrock.options import LOCAL
from ragstack_common.access.policy import read_policy
from ragstack_common.http.console import EXAMPLES, parse_questions
from ragstack_common.registry.table import (
    BY_LABEL,
    EXPIRES_AT,
    IRRECOVERABLE,
    PARTITION_KEY,
    RECOVERABLE,
    SORT_KEY,
)
from ragstack_common.settings.access import NO_ACCESS_FILE, AuthKind, Tenants
from ragstack_local.connection import running
from ragstack_local.connection.connection import Connection, Project, local_environment
from ragstack_local.connection.environment import DATA_VARIABLE
from ragstack_local.errors import StackError
from ragstack_local.stack import answers, console, issuer, launcher
from ragstack_local.stack.deployment import (
    KnowledgeBaseType,
    LocalKnowledgeBase,
    Step,
    answers_environment,
    deploy,
    deployed_type,
)
from ragstack_local.stack.durable_items import Journal, KeptItems
from ragstack_local.stack.last_callers import LastCallers
from ragstack_local.stack.processes import Child, held_interrupts, raised_interrupts, require_free_port
from ragstack_local.stack.recovery import DataFolder, Session

DEFAULT_PORT: Final = 4566
DEFAULT_DATA: Final = "local"
"""Subfolder of the project's data folder."""

START_SECONDS: Final = 60.0

BEDROCK: Final = "bedrock"
"""Subfolder of the data folder for the local Bedrock."""

KEPT_ITEMS: Final = KeptItems(IRRECOVERABLE, PARTITION_KEY, SORT_KEY, EXPIRES_AT, BY_LABEL)

UNPACKED: Final = Path("build", "unpacked")
"""Where MiniStack unpacks layers and functions, below the checkout."""

ANSWER_SECONDS: Final = 900
"""API Gateway waits as long for a response that streams."""


@dataclass(frozen=True)
class StackOptions:
    """How the local stack is started.

    Attributes:
        data: Folder of objects, index and logs; survives a restart.
        port: MiniStack's port: S3, SQS, Lambda, API Gateway.
        knowledge_base: Type of the knowledge base; None for that of the last start.
        embedding: As `ragstack bedrock` takes it.
        bedrock_arguments: More options of `ragstack bedrock`.
        auth: How callers authenticate: `none`, `oidc` or both.
        tenants: Whether the tenants of the access file share a knowledge base, or each has its own.
        is_demonstration: Whether the next start keeps these callers only if there are none of an earlier start.
        origins: Web pages that may use the stack, such as ``http://localhost:5173``.
        context: Context values of the CDK app, by name.
    """

    data: Path
    port: int = DEFAULT_PORT
    bedrock_port: int = DEFAULT_BEDROCK_PORT
    answers_port: int = answers.DEFAULT_PORT
    issuer_port: int = issuer.DEFAULT_PORT
    console_port: int = console.DEFAULT_PORT
    auth: tuple[AuthKind, ...] = (AuthKind.NONE,)
    access: Path | None = None
    tenants: Tenants = Tenants.LABEL
    is_demonstration: bool = False
    knowledge_base: KnowledgeBaseType | None = None
    embedding: str = "hashed"
    bedrock_arguments: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    context: Mapping[str, str] = field(default_factory=dict)

    @property
    def has_people(self) -> bool:
        """Whether people sign in, so that the stack has an issuer."""
        return AuthKind.OIDC in self.auth

    @property
    def pages(self) -> tuple[str, ...]:
        """Origins of the pages that may use MiniStack and the issuer: those of the console, and the deployer's own."""
        return (*console.console_origins(self.console_port), *self.origins)

    @property
    def tenant_prefixes(self) -> Mapping[str, str]:
        """The prefixes of the tenants that get knowledge bases of their own.

        Raises:
            StackError: There is no access file with tenants.
        """
        if self.chosen.get("tenants") != Tenants.INDEX:
            return {}
        tenants = {} if self.access_file is None else read_policy(self.access_file).tenants
        if not tenants:
            raise StackError(
                "tenants=index needs an access file with tenants: choose it with --access, or choose --tenants label"
            )
        return {name: tenant.prefix for name, tenant in tenants.items()}

    @property
    def access_file(self) -> Path | None:
        """The access file, which a context value may name; None if every caller may do everything."""
        file = self.chosen.get("access", NO_ACCESS_FILE)
        return None if file == NO_ACCESS_FILE else Path(file)

    @property
    def chosen(self) -> Mapping[str, str]:
        """The context values, with those about callers."""
        own = {"tenants": str(self.tenants)} if self.tenants is Tenants.INDEX else {}
        if self.has_people:
            own |= {
                "auth": ",".join(self.auth),
                "oidc_issuer": f"http://{LOCAL}:{self.issuer_port}",
                "oidc_audience": issuer.CLIENT,
                "access": str(self.access),
            }
        return {**own, **self.context}


@dataclass(frozen=True)
class RunningStack:
    """The local stack while it is up."""

    connection: Connection
    children: tuple[Child, ...]
    is_second: bool  # commands use another stack that is running

    def watch(self) -> NoReturn:
        """Wait until interrupted.

        Raises:
            StackError: One of the processes has ended.
        """
        while True:
            for child in self.children:
                child.require_alive()
            time.sleep(0.5)


@contextmanager
def local_stack(
    project: Project, options: StackOptions, step: Step = lambda _: nullcontext()
) -> Iterator["RunningStack"]:
    """Run the local stack for as long as the context lasts.

    Raises:
        StackError: A port is in use, something is not installed, or a part did not start.
    """
    with ExitStack() as cleanup:
        cleanup.enter_context(raised_interrupts())
        cleanup.callback(os.umask, os.umask(PRIVATE_UMASK))
        place = _place(project, options.data)
        announce = cleanup.enter_context(running.announcing(place, options.data))
        _require_free_ports(options)
        prefixes = options.tenant_prefixes
        aws_endpoint = f"http://{LOCAL}:{options.port}"
        bedrock_endpoint = f"http://{LOCAL}:{options.bedrock_port}"
        answers_endpoint = f"http://{LOCAL}:{options.answers_port}"
        folder = DataFolder(options.data)
        session = cleanup.enter_context(folder.opened())
        # Before anything starts: a start that ends early is not followed by one with other callers.
        access = None if options.access == project.sample_access else options.access
        LastCallers(options.auth, access, options.tenants).write(options.data, replaces=not options.is_demonstration)
        with step("Starting MiniStack and the local Bedrock"):
            services = _start_services(cleanup, project, options, folder, session)
        with step("Creating the knowledge base"):
            chosen = options.knowledge_base or deployed_type(options.data)
            knowledge_base = LocalKnowledgeBase.ensure(bedrock_endpoint, chosen)
            tenants = LocalKnowledgeBase.ensure_tenants(bedrock_endpoint, prefixes, knowledge_base.kind)
        connection = deploy(
            project,
            data=options.data,
            aws_endpoint=aws_endpoint,
            bedrock_endpoint=bedrock_endpoint,
            answers_endpoint=answers_endpoint,
            knowledge_base=knowledge_base,
            chosen={**options.chosen, **({"tenant_knowledge_bases": json.dumps(tenants)} if tenants else {})},
            step=step,
        )
        connection = replace(connection, console_url=console.console_url(options.console_port))
        with step("Starting the server of answers and the console"):
            with held_interrupts():
                answering = _start_answers(project, options, aws_endpoint)
                cleanup.callback(answering.stop)
            with held_interrupts():
                serving = _start_console(options, connection)
                cleanup.callback(serving.stop)
            serving.wait_until(lambda: _answers(f"http://{LOCAL}:{options.console_port}/console.json"), START_SECONDS)
            answering.wait_until(lambda: _answers(f"{answers_endpoint}/health"), START_SECONDS)
        how = "comparing" if session.continues else "uploading"
        with (
            step(
                f"The last run did not end cleanly: {how} its documents again. Changes of access rules, judgments,"
                " conversations and budgets are kept"
            )
            if session.recovers
            else nullcontext()
        ):
            folder.recover(session, connection)
        from ragstack_local.stack.rebuilding import rebuild  # noqa: PLC0415 - help does without

        rebuild(connection, options.data / BEDROCK, is_uploaded=session.recovers and not session.continues)
        announce(asdict(connection))
        children = (*services, answering, serving)
        yield RunningStack(connection, children, is_second=place != project.running)


def _place(project: Project, data: Path) -> Path:
    """Return the file that records a stack: the project's; in a data folder of its own if another stack is there.

    Raises:
        StackError: A stack already uses the data folder.
    """
    own = replace(project, data=data).running
    running.clean_up(own)
    if running.read(own) is not None:
        raise StackError(
            f"A local stack is running already in {data}: end it with `{DATA_VARIABLE}={data} ragstack down`"
        )
    other = running.read_data_folder(project.running)
    return project.running if other in (None, data) or data == project.data / DEFAULT_DATA else own


def _require_free_ports(options: StackOptions) -> None:
    wanted = [
        ("MiniStack", options.port, "--port"),
        ("the local Bedrock", options.bedrock_port, "--bedrock-port"),
        ("the server of answers", options.answers_port, "--answers-port"),
        ("the console", options.console_port, "--console-port"),
    ]
    if options.has_people:
        wanted.append(("the local issuer", options.issuer_port, "--issuer-port"))
    for (name, port, option), (other, other_port, _) in combinations(wanted, 2):
        if port == other_port:
            raise StackError(f"{name} and {other} cannot share port {port}: choose another {option}")
    for name, port, option in wanted:
        require_free_port(port, name, option)


def _start_services(
    cleanup: ExitStack, project: Project, options: StackOptions, folder: DataFolder, session: Session
) -> list[Child]:
    """Start what answers in the place of AWS, all at once, and wait until it answers; it ends with the cleanup."""
    aws_endpoint = f"http://{LOCAL}:{options.port}"
    with held_interrupts():
        ministack = _start_ministack(project, options, folder)
        cleanup.callback(shutil.rmtree, _temporary(options), ignore_errors=True)
        cleanup.callback(lambda: setattr(session, "is_written", ministack.stop()))
    with held_interrupts():
        bedrock = _start_bedrock(options, aws_endpoint)
        cleanup.callback(bedrock.stop)
    services = [ministack, bedrock]
    if options.has_people:
        with held_interrupts():
            services.append(_start_issuer(options, aws_endpoint))
            cleanup.callback(services[-1].stop)
    bedrock.wait_until(lambda: _answers(f"http://{LOCAL}:{options.bedrock_port}/health"), START_SECONDS)
    ministack.wait_until(lambda: _answers(f"{aws_endpoint}/_ministack/health"), START_SECONDS)
    return services


def _start_ministack(project: Project, options: StackOptions, folder: DataFolder) -> Child:
    try:
        Journal(folder.journal).read()  # MiniStack would refuse every request to the table
    except (OSError, RuntimeError) as error:
        raise StackError(str(error)) from error
    temporary = _temporary(options)
    shutil.rmtree(temporary, ignore_errors=True)  # left by a run that was killed
    temporary.mkdir(parents=True)
    env = local_environment(
        f"http://{LOCAL}:{options.port}",
        GATEWAY_PORT=str(options.port),
        BIND_HOST=LOCAL,
        MINISTACK_HOST=LOCAL,
        PERSIST_STATE="1",
        S3_PERSIST="1",
        S3_DATA_DIR=str(folder.objects),
        STATE_DIR=str(folder.state),
        TMPDIR=str(temporary),
        LOG_LEVEL="WARNING",
        # Only the guarded port.
        USE_SSL="0",
        IOT_MTLS_ENABLED="0",
        MINISTACK_APIGW_PROXY_TIMEOUT_SECONDS=str(ANSWER_SECONDS),
        SFTP_ENABLED="0",
    )
    # -P keeps the launcher's folder off the path of MiniStack and of the functions.
    settings = {
        "journal": {"file": str(folder.journal), "kept": KEPT_ITEMS._asdict()},
        "changes": {"file": str(folder.changes), "kept": KEPT_ITEMS._replace(partitions=RECOVERABLE)._asdict()},
        "unpacked": str(project.root / UNPACKED),
    }
    command: list[str | Path] = [project.ministack.with_name("python"), "-P", launcher.__file__, json.dumps(settings)]
    command += options.pages
    return Child.start("MiniStack", command, env, _logs(options) / "ministack.log", ends_with_parent=True)


def _start_bedrock(options: StackOptions, aws_endpoint: str) -> Child:
    command: list[str | Path] = [sys.executable, "-P", "-m", "local_bedrock"]
    command += ["--port", str(options.bedrock_port), "--data-dir", options.data / BEDROCK, "--replace-index"]
    command += ["--embedding", options.embedding, "--s3-endpoint", aws_endpoint]
    command += [part for origin in options.origins for part in ("--allow-origin", origin)]
    if options.access_file is not None:
        command += ["--scope-attribute", read_policy(options.access_file).attribute]
    command += options.bedrock_arguments
    # An embedding on AWS needs the user's own settings; documents are still read from --s3-endpoint.
    uses_aws = options.embedding.startswith("bedrock:")
    environment = dict(os.environ) if uses_aws else local_environment(aws_endpoint)
    return Child.start("The local Bedrock", command, environment, _logs(options) / "bedrock.log", ends_with_parent=True)


def _start_issuer(options: StackOptions, aws_endpoint: str) -> Child:
    command: list[str | Path] = [sys.executable, "-P", "-m", issuer.SERVER, str(options.issuer_port)]
    command += [options.data / "issuer-key.pem", *options.pages]
    environment = local_environment(aws_endpoint)
    return Child.start("The local issuer", command, environment, _logs(options) / "issuer.log", ends_with_parent=True)


def _start_answers(project: Project, options: StackOptions, aws_endpoint: str) -> Child:
    command: list[str | Path] = [sys.executable, "-P", "-m", answers.__name__, str(options.answers_port)]
    command += [project.root / answers.HANDLER, *options.origins]
    env = answers_environment(options.data, aws_endpoint)
    return Child.start("The server of answers", command, env, _logs(options) / "answers.log", ends_with_parent=True)


def _start_console(options: StackOptions, connection: Connection) -> Child:
    settings = console.ConsoleSettings(
        port=options.console_port,
        api_url=connection.api_url,
        answers_url=str(connection.answers_url),
        uploads_url=f"{connection.aws_endpoint}/{connection.bucket}",
        people_url=connection.people_url,
        issuer=connection.oidc_issuer,
        client_id=issuer.CLIENT if options.has_people else None,
        anonymous=AuthKind.NONE in options.auth,
        origins=options.origins,
        questions=parse_questions(options.context.get("console_questions", "")) or EXAMPLES,
    )
    command: list[str | Path] = [sys.executable, "-P", "-m", console.SERVER, json.dumps(asdict(settings))]
    environment = local_environment(str(connection.aws_endpoint))
    return Child.start("The console", command, environment, _logs(options) / "console.log", ends_with_parent=True)


def _temporary(options: StackOptions) -> Path:
    return options.data / running.TEMPORARY


def _logs(options: StackOptions) -> Path:
    return options.data / running.LOGS


def _answers(url: str) -> bool:
    try:
        return urllib3.request("GET", url, timeout=1.0, retries=False).status == HTTPStatus.OK
    except urllib3.exceptions.HTTPError:
        return False
