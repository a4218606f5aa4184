"""``ragstack query``, and the commands that list what it can be restricted to: corpora, versions, facets."""

import json
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from rich.text import Text

from ragstack_common.settings.limits import MAX_PASSAGES
from ragstack_common.settings.names import BEDROCK_RERANKER, NO_RERANKER, REQUEST_RERANKERS
from ragstack_local.api.calls import run
from ragstack_local.connection_options import AsJson, ConnectionOptions, with_options
from ragstack_local.errors import NOTHING_FOUND
from ragstack_local.search_options import EngineOptions, QueryOptions
from ragstack_local.show import display, results
from ragstack_local.show.display import console, counted
from ragstack_local.show.explanation import print_explanation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ragstack_common.services.document_models import Facets
    from ragstack_local.api.http_operations import HttpOperations

VALUES_PER_PAGE: Final = 1000
"""The most that one answer of GET /api/facets has."""


class DeduplicateBy(StrEnum):
    """What is one result."""

    DOCUMENT = "document"
    CHUNK = "chunk"


@with_options
def query(
    options: QueryOptions,
    engine: EngineOptions,
    stack: ConnectionOptions,
    text: Annotated[str | None, typer.Argument(help="What you want to know.", show_default=False)] = None,
    question: Annotated[str | None, typer.Option("--query", "-q", help="The same, as an option.")] = None,
    trust: Annotated[
        float | None,
        typer.Option(
            help="How far to trust --filter, 0 to 1. Default: estimated from the question and the results.",
            min=0,
            max=1,
        ),
    ] = None,
    min_relevance: Annotated[
        float | None,
        typer.Option(help="Leave out results with a lower relevance (a probability).", min=0.0, max=1.0),
    ] = None,
    min_score: Annotated[float | None, typer.Option(help="Leave out results with a lower score.", min=0.0)] = None,
    rerank: Annotated[
        str | None,
        typer.Option(
            metavar="|".join((NO_RERANKER, *REQUEST_RERANKERS, BEDROCK_RERANKER)),
            help="Reranker: none, lexical (compares the words of the query), or with --engine a reranking model of"
            " Amazon Bedrock (Cohere's, or bedrock:MODEL_ARN; needs AWS credentials and a region)."
            " Default: the API's own configuration.",
        ),
    ] = None,
    deduplicate_by: Annotated[
        DeduplicateBy, typer.Option(help="One result for each document, or for each chunk.")
    ] = DeduplicateBy.DOCUMENT,
    passages: Annotated[
        int | None,
        typer.Option(help="Maximum passages of each document. Default: 1; with --json, 3.", min=1, max=MAX_PASSAGES),
    ] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Show how each result was ranked.")] = False,
    as_json: AsJson = False,
) -> None:
    """Search through the HTTP API, or in an engine of your own, and show the ranked results.

    Example:  ragstack query "How many days of leave do I have?" --top-k 3 --json

    One version, explained:  ragstack query "rate limit" --doc-version 2 --rerank lexical --explain

    An API anywhere:  ragstack query "rate limit" --api-url https://abcde12345.execute-api.eu-west-1.amazonaws.com/prod

    A Chroma collection:  ragstack query -q "rate limit" -c handbook --db-path chroma
    """
    if (text is None) == (question is None):
        raise typer.BadParameter("give the question once, as an argument or as --query", param_hint="TEXT")
    words = text if text is not None else str(question)
    body: dict[str, Any] = {
        "query": words,
        **options.body(),
        "filter_trust": trust,
        "min_relevance": min_relevance,
        "min_score": min_score,
        "rerank": _reranker(rerank, is_api=engine.is_api),
        "deduplicate_by": None if deduplicate_by is DeduplicateBy.DOCUMENT else deduplicate_by.value,
        "passages": passages,
        "explain": explain or None,
    }
    from ragstack_common.services.operations import parse_request  # noqa: PLC0415 - help does without
    from ragstack_common.services.search_models import RetrieveRequest  # noqa: PLC0415

    request = parse_request(RetrieveRequest, {name: value for name, value in body.items() if value is not None})
    with engine.open(stack, rerank if rerank and rerank.startswith(BEDROCK_RERANKER) else None) as (operations, roots):
        answer = run(operations.search(request)).model_dump(mode="json")
    if as_json:
        display.print_json(answer)
    else:
        results.print_results(answer, words, passages or 1, roots)
        if engine.is_api and not answer["results"]:
            results.print_hints(request.model_fields_set)
        if explain:
            print_explanation(answer["results"])
    if not answer["results"]:
        raise typer.Exit(NOTHING_FOUND)


@with_options
def corpora(stack: ConnectionOptions, as_json: AsJson = False) -> None:
    """List the corpora that can be searched: the configured ones, and those of the documents.

    Example:  ragstack corpora
    """
    answer = run(stack.api().corpora())
    if as_json:
        display.print_json(answer)
        return
    if not answer.corpora:
        console.print("No searchable document has a corpus: `ragstack ingest FOLDER --corpus NAME`")
    for corpus in answer.corpora:
        marks = [("configured", "green")] if corpus.configured else []
        if not corpus.searchable:
            marks.append(("no searchable documents", "yellow"))
        elif corpus.documents:
            marks.append((counted(corpus.documents, "document"), "dim"))
        line = Text.assemble(corpus.name, *(Text.assemble("  ", mark) for mark in marks))
        console.print(line, soft_wrap=True)
    if not answer.complete:
        console.print("There are more.", style="yellow")


@with_options
def versions(stack: ConnectionOptions, as_json: AsJson = False) -> None:
    """List the versions of the documents that can be searched.

    Example:  ragstack versions --json
    """
    answer = run(stack.api().versions())
    if as_json:
        display.print_json(answer)
        return
    if not answer.versions:
        console.print("No searchable document has a version: `ragstack ingest FOLDER --version NAME`")
    counts: Sequence[int | None] = answer.documents or [None] * len(answer.versions)
    for version, documents in zip(answer.versions, counts, strict=True):
        kind = "" if isinstance(version, str) else f"  ({'boolean' if isinstance(version, bool) else 'number'})"
        count = f"  {counted(documents, 'document')}" if documents else ""
        console.print(Text.assemble(str(version), (kind + count, "dim")), soft_wrap=True)
    if not answer.complete:
        console.print("There are more.", style="yellow")


@with_options
def facets(
    stack: ConnectionOptions,
    key: Annotated[str | None, typer.Argument(help="Only this attribute.", show_default=False)] = None,
    prefix: Annotated[
        str | None, typer.Option(help="Only values of KEY that begin with this (case-sensitive).", show_default=False)
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of values.")] = VALUES_PER_PAGE,
    as_json: AsJson = False,
) -> None:
    """Count the documents that can be searched, by the values of their attributes, most frequent first.

    Example:  ragstack facets

    One attribute, for a program:  ragstack facets topic --json

    Those that begin with some letters:  ragstack facets topic --prefix tra
    """
    if prefix and key is None:
        raise typer.BadParameter("name the attribute too: ragstack facets KEY --prefix TEXT", param_hint="--prefix")
    answer = _values(stack.api(), limit, key=key, prefix=prefix or None)
    if as_json:
        display.print_json(answer)
        return
    console.print(f"{counted(answer.documents, 'document')} can be searched", style="dim")
    for facet in answer.facets:
        console.print(Text(facet.key, "bold"), soft_wrap=True)
        for found in sorted(facet.values, key=lambda each: -each.documents):
            text = found.value if isinstance(found.value, str) else json.dumps(found.value)
            console.print(Text.assemble(f"{found.documents:>7,}  ", text), soft_wrap=True)
    if key is not None and not answer.facets:
        what = f"a value of {key} that begins with {prefix}" if prefix else f"the attribute {key}"
        console.print(f"No document has {what}. `ragstack facets` lists all attributes.", soft_wrap=True)
        raise typer.Exit(NOTHING_FOUND)
    if answer.next_token:
        console.print(
            f"There are more than {limit:,} values: raise --limit, or narrow them down with KEY --prefix TEXT",
            style="yellow",
            soft_wrap=True,
        )


def _values(api: "HttpOperations", limit: int, **chosen: str | None) -> "Facets":
    """Read pages of values until there are enough, and return them as one."""
    from ragstack_common.services.document_models import Facets  # noqa: PLC0415 - help does without

    pages: list[Facets] = []
    left, token = limit, None
    while not pages or (token and left > 0):
        some = min(left, VALUES_PER_PAGE)
        pages.append(
            run(api.request("GET", "/api/facets", Facets, parameters={**chosen, "limit": some, "next_token": token}))
        )
        token = pages[-1].next_token
        left -= sum(len(facet.values) for facet in pages[-1].facets)
    facets = {facet.key: facet.model_copy(update={"values": []}) for page in pages for facet in page.facets}
    for facet in (facet for page in pages for facet in page.facets):
        facets[facet.key].values.extend(facet.values)
    return pages[-1].model_copy(update={"facets": list(facets.values())})


def _reranker(name: str | None, *, is_api: bool) -> str | bool | None:
    """Return the request's ``rerank``; False for Bedrock's models, which are wrapped around an engine instead."""
    is_bedrock = name is not None and name.partition(":")[0] == BEDROCK_RERANKER
    if is_bedrock and is_api:
        raise typer.BadParameter(
            f"the API accepts only {' or '.join((NO_RERANKER, *REQUEST_RERANKERS))}. Deploy the engine"
            " `reranked` with the reranker bedrock,"
            " or search with --engine and a file that describes an engine",
            param_hint="--rerank",
        )
    if not is_bedrock and name not in (None, NO_RERANKER, *REQUEST_RERANKERS):
        raise typer.BadParameter(
            f"{name!r} is not one of {', '.join((NO_RERANKER, *REQUEST_RERANKERS))}, {BEDROCK_RERANKER}[:MODEL_ARN]",
            param_hint="--rerank",
        )
    return False if is_bedrock or name == NO_RERANKER else name
