"""The command that runs the local Bedrock alone: ``ragstack bedrock``, or ``python -m local_bedrock``."""

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from local_bedrock.http.guard import checked_origin
from local_bedrock.limits.fault_injection import FaultError, FaultRule
from local_bedrock.limits.quotas import QuotaError, Quotas
from local_bedrock.options import DEFAULT_PORT, EMBEDDING_CHOICE_HELP, LOCAL, Options, Pace
from ragstack_common.settings.model_cache import AUTOMATIC, EMBEDDING_VARIABLE


def _origin(text: str) -> str:
    try:
        return checked_origin(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error


AllowOrigin = Annotated[
    list[str] | None,
    typer.Option(
        parser=_origin,
        metavar="ORIGIN",
        help="Allow the web page at this origin to use the server, such as http://localhost:5173. Repeatable.",
    ),
]

alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)


@alone.command()
def bedrock(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = LOCAL,
    port: Annotated[int, typer.Option(help="Port to listen on; 0 takes a free one.", min=0, max=65535)] = DEFAULT_PORT,
    data_dir: Annotated[Path, typer.Option(help="Folder of the index, created if missing.")] = Path(
        ".ragstack/bedrock"
    ),
    replace_index: Annotated[
        bool, typer.Option("--replace-index", help="Set an index aside that cannot be read, and start an empty one.")
    ] = False,
    embedding: Annotated[str, typer.Option(envvar=EMBEDDING_VARIABLE, help=EMBEDDING_CHOICE_HELP)] = AUTOMATIC,
    cosine_share: Annotated[
        float | None,
        typer.Option(
            envvar="RAGSTACK_COSINE_SHARE",
            help="Share of the cosine in the score of HYBRID; the rest is BM25. Default: chosen for the embedding.",
            min=0,
            max=1,
        ),
    ] = None,
    feedback: Annotated[
        bool, typer.Option(help="HYBRID searches again with a vector nearer to those of the first results.")
    ] = True,
    scope_attribute: Annotated[
        str | None,
        typer.Option(
            help="Attribute of access labels, such as access. HYBRID then counts words only in documents whose labels"
            " the filter admits, so that hidden documents change no score."
        ),
    ] = None,
    s3_endpoint: Annotated[
        str | None, typer.Option(help="Where documents are read. Default: boto3's own settings.")
    ] = None,
    contextual_headers: Annotated[
        bool, typer.Option(help="Index each chunk together with its document's title and headings.")
    ] = True,
    creation_seconds: Annotated[
        float, typer.Option(help="Minimum time that a knowledge base is CREATING.", min=0)
    ] = 0.0,
    indexing_seconds: Annotated[
        float, typer.Option(help="Minimum time that a document takes to reach its final status.", min=0)
    ] = 0.0,
    deletion_seconds: Annotated[float, typer.Option(help="Minimum time that a document is DELETING.", min=0)] = 0.0,
    llm_url: Annotated[
        str | None,
        typer.Option(
            envvar="RAGSTACK_LLM_URL",
            help="OpenAI-compatible server that writes the answers, such as http://localhost:11434/v1."
            " Without it, answers quote the documents.",
        ),
    ] = None,
    llm_model: Annotated[
        str | None, typer.Option(envvar="RAGSTACK_LLM_MODEL", help="Its model. Default: the first model that it lists.")
    ] = None,
    llm_api_key: Annotated[
        str | None,
        typer.Option(envvar="RAGSTACK_LLM_API_KEY", help="API key of that server. Prefer the environment variable."),
    ] = None,
    quotas: Annotated[bool, typer.Option("--quotas", help="Enforce AWS's quotas.")] = False,
    quota: Annotated[
        list[str] | None,
        typer.Option(help="Change one quota: NAME=NUMBER or NAME=off. The others keep AWS's values. Repeatable."),
    ] = None,
    fault: Annotated[
        list[str] | None,
        typer.Option(help="Inject a fault: operation=Retrieve,kind=throttling,rate=0.1. Repeatable."),
    ] = None,
    admin: Annotated[
        bool, typer.Option("--admin", help="Serve /_ragstack/faults, /_ragstack/metrics and /_ragstack/options.")
    ] = False,
    allow_origin: AllowOrigin = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(help="A host name that clients may use, in addition to localhost and 127.0.0.1. Repeatable."),
    ] = None,
) -> None:
    """Run the local Bedrock Knowledge Base alone, as an endpoint for any AWS SDK.

    Example:  ragstack bedrock --port 4567, and then  boto3.client("bedrock-agent-runtime",
    endpoint_url="http://127.0.0.1:4567")

    As slow and as strict as AWS:  ragstack bedrock --quotas --indexing-seconds 5 --quota retrieve_per_second=2

    Throttle about one search in ten, and lose the acknowledgements of two submissions:  ragstack bedrock
    --fault operation=Retrieve,kind=throttling,rate=0.1 --fault "operation=Ingest*,kind=drop,when=after,count=2"

    Kinds of faults: throttling, internal, unavailable, conflict, denied, contention, latency (milliseconds=...),
    drop, truncate (after_bytes=...). All kinds take rate=..., count=..., when=after and seed=...

    Signatures of requests are not checked: any credentials work.
    """
    serve(
        Options(
            data_dir=data_dir,
            replace_index=replace_index,
            host=host,
            port=port,
            embedding=embedding,
            cosine_share=cosine_share,
            feedback=feedback,
            scope_attribute=scope_attribute,
            s3_endpoint=s3_endpoint,
            contextual_headers=contextual_headers,
            pace=Pace(creation_seconds, indexing_seconds, deletion_seconds),
            llm_url=llm_url,
            llm_model=llm_model,
            llm_api_key=llm_api_key,
            quotas=_quotas(quotas, quota or []),
            faults=_faults(fault or []),
            admin=admin,
            origins=tuple(allow_origin or ()),
            hosts=tuple(allow_host or ()),
        )
    )


def serve(options: Options) -> None:
    """Serve until interrupted.

    Raises:
        RagStackError: It can't start.
        typer.BadParameter: A fault matches no operation.
    """
    # Only this command needs the store and its engine; the other commands of ragstack start faster without them.
    from local_bedrock import server  # noqa: PLC0415

    try:
        # Flushed: a parent process waits for the first line at the end of a pipe.
        server.run(options, announce=partial(print, flush=True))
    except FaultError as error:
        raise typer.BadParameter(str(error), param_hint="--fault") from error


def check(arguments: list[str]) -> dict[str, Any]:
    """Check arguments that are passed to this command in another process; return the values of all options.

    Raises:
        click.UsageError: As for any command.
    """
    command = typer.main.get_command(alone)
    with command.make_context("ragstack bedrock", list(arguments)) as context:
        _quotas(context.params["quotas"], context.params["quota"] or [])
        _faults(context.params["fault"] or [])
        return context.params


def _quotas(are_on: bool, settings: list[str]) -> Quotas | None:
    if not are_on and not settings:
        return None
    try:
        return Quotas().with_settings(settings)
    except QuotaError as error:
        raise typer.BadParameter(str(error), param_hint="--quota") from error


def _faults(texts: list[str]) -> tuple[FaultRule, ...]:
    try:
        return tuple(map(FaultRule.parse, texts))
    except FaultError as error:
        raise typer.BadParameter(str(error), param_hint="--fault") from error
