"""The commands that ask: for documents, for corpora and for versions."""

import json
from collections.abc import Callable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Final
from urllib.parse import urlencode

import typer

from ragstack_common.config import BEDROCK_ENGINE, LEXICAL, MAX_RESULTS
from ragstack_local import display
from ragstack_local.connection import DEFAULT_PREFIX
from ragstack_local.targets import (
    API_KEY_VARIABLE,
    API_URL_VARIABLE,
    TOKEN_VARIABLE,
    ApiKey,
    ApiUrl,
    OnAws,
    Prefix,
    Token,
    api_of,
    is_option,
    not_blank,
)

NOTHING_FOUND: Final = 1

NO_RERANKER: Final = "none"
BEDROCK_RERANKER: Final = "bedrock"

_WHERE_NAMES_ARE_LISTED: Final = {
    "corpus_filter": "`ragstack corpora` lists what --corpus can choose.",
    "version_filter": "`ragstack versions` lists what --doc-version can choose.",
}

AsJson = Annotated[bool, typer.Option("--json", help="Print the API's answer as JSON.")]


class DeduplicateBy(StrEnum):
    """What is one result."""

    DOCUMENT = "document"
    CHUNK = "chunk"


def query(
    text: Annotated[str | None, typer.Argument(help="What you want to know.", show_default=False)] = None,
    question: Annotated[str | None, typer.Option("--query", "-q", help="The same, as an option.")] = None,
    metadata_filter: Annotated[
        str | None,
        typer.Option(
            "--filter",
            help='Prefer what matches. JSON, for example \'{"topic": {"$eq": "travel"}, "year": {"$gte": 2025}}\'.',
        ),
    ] = None,
    corpus: Annotated[
        str | None,
        typer.Option(
            callback=not_blank, help="Only documents of this corpus; all for every one. See `ragstack corpora`."
        ),
    ] = None,
    doc_version: Annotated[
        str | None, typer.Option(callback=not_blank, help="Only documents of this version. See `ragstack versions`.")
    ] = None,
    top_k: Annotated[
        int | None,
        typer.Option(help="Results at most. Left out: 5, or 10 where corpora are configured.", min=1, max=MAX_RESULTS),
    ] = None,
    min_score: Annotated[float | None, typer.Option(help="Leave out results with a lower score.", min=0.0)] = None,
    rerank: Annotated[
        str | None,
        typer.Option(
            metavar="none|lexical|bedrock",
            help="Reranker: none, lexical (compares the words of the query), or with --engine a reranking model of"
            " Amazon Bedrock (Cohere's, or bedrock:MODEL_ARN; needs AWS credentials and a region)."
            " Default: the API's own configuration.",
        ),
    ] = None,
    deduplicate_by: Annotated[
        DeduplicateBy, typer.Option(help="One result for each document, or for each chunk.")
    ] = DeduplicateBy.DOCUMENT,
    explain: Annotated[bool, typer.Option("--explain", help="Show how each result came to its place.")] = False,
    engine: Annotated[
        str,
        typer.Option(
            metavar="bedrock|chroma|FILE.json",
            help="Where: the API of the stack, a Chroma collection, or the engine that a JSON file describes.",
        ),
    ] = BEDROCK_ENGINE,
    collection: Annotated[
        str | None, typer.Option("--collection", "-c", help="With --engine chroma: the collection.")
    ] = None,
    db_path: Annotated[Path | None, typer.Option(help="With --engine chroma: the folder it is in.")] = None,
    as_json: AsJson = False,
    aws: OnAws = False,
    stack_prefix: Prefix = DEFAULT_PREFIX,
    api_url: ApiUrl = None,
    api_key: ApiKey = None,
    token: Token = None,
) -> None:
    """Search through the HTTP interface, or in an engine of your own, and show the ranked results.

    Example:  ragstack query "How many days of leave do I have?" --top-k 3 --json

    Only one version, and why:  ragstack query "rate limit" --doc-version 2 --rerank lexical --explain

    An API anywhere:  ragstack query "rate limit" --api-url https://abcde12345.execute-api.eu-west-1.amazonaws.com/prod

    A Chroma collection:  ragstack query --engine chroma -q "rate limit" -c handbook --db-path chroma
    """
    words = _question(text, question)
    body: dict[str, Any] = {
        "query": words,
        "metadata_filter": _json(metadata_filter, "--filter"),
        "corpus_filter": corpus,
        "version_filter": doc_version,
        "top_k": top_k,
        "min_score": min_score,
        "rerank": _reranker(rerank, engine),
        "deduplicate_by": None if deduplicate_by is DeduplicateBy.DOCUMENT else deduplicate_by.value,
        "explain": explain or None,
    }
    asked = {name: value for name, value in body.items() if value is not None}
    if engine == BEDROCK_ENGINE:
        _refuse({"--collection": collection, "--db-path": db_path}, "needs --engine chroma")
        answer = api_of(aws, stack_prefix, api_url, api_key, token).retrieve(asked)
    else:
        for_the_api = {
            "--aws": aws,
            "--api-url": is_option(api_url, API_URL_VARIABLE),
            "--api-key": is_option(api_key, API_KEY_VARIABLE),
            "--token": is_option(token, TOKEN_VARIABLE),
        }
        _refuse(for_the_api, f"is for the API, not for --engine {engine}")
        answer = _ask_engine(engine, collection, db_path, asked, rerank)
    _show(answer, as_json, lambda: _print_results(answer, asked, explain))
    if not answer["results"]:
        raise typer.Exit(NOTHING_FOUND)


def corpora(
    as_json: AsJson = False,
    aws: OnAws = False,
    stack_prefix: Prefix = DEFAULT_PREFIX,
    api_url: ApiUrl = None,
    api_key: ApiKey = None,
    token: Token = None,
) -> None:
    """List the corpora that can be searched: the configured ones, and those that documents belong to.

    Example:  ragstack corpora
    """
    answer = api_of(aws, stack_prefix, api_url, api_key, token).look_up("corpora")
    _show(answer, as_json, lambda: display.print_corpora(answer))


def versions(
    as_json: AsJson = False,
    aws: OnAws = False,
    stack_prefix: Prefix = DEFAULT_PREFIX,
    api_url: ApiUrl = None,
    api_key: ApiKey = None,
    token: Token = None,
) -> None:
    """List the versions of documents that can be searched.

    Example:  ragstack versions --json
    """
    answer = api_of(aws, stack_prefix, api_url, api_key, token).look_up("versions")
    _show(answer, as_json, lambda: display.print_versions(answer))


def facets(
    key: Annotated[str | None, typer.Argument(help="Only this attribute.", show_default=False)] = None,
    as_json: AsJson = False,
    aws: OnAws = False,
    stack_prefix: Prefix = DEFAULT_PREFIX,
    api_url: ApiUrl = None,
    api_key: ApiKey = None,
    token: Token = None,
) -> None:
    """Count the documents that can be searched, by the values of their attributes.

    Example:  ragstack facets

    One attribute, for a program:  ragstack facets topic --json
    """
    name = "facets" if key is None else f"facets?{urlencode({'key': key})}"
    answer = api_of(aws, stack_prefix, api_url, api_key, token).ask("GET", f"/api/{name}", "facets")
    _show(answer, as_json, lambda: display.print_facets(answer, key))


def _reranker(name: str | None, engine: str) -> str | bool | None:
    """Return what the request says of reranking; Bedrock's models are put around an engine instead."""
    kind = None if name is None else name.partition(":")[0]
    if kind == BEDROCK_RERANKER:
        if engine == BEDROCK_ENGINE:
            raise typer.BadParameter(
                "the API accepts only none or lexical. Deploy the engine `reranked` with the reranker bedrock,"
                " or search with --engine and a file that describes an engine",
                param_hint="--rerank",
            )
        return False
    if name not in (None, NO_RERANKER, LEXICAL):
        raise typer.BadParameter(
            f"{name!r} is not one of {NO_RERANKER}, {LEXICAL}, {BEDROCK_RERANKER}[:MODEL_ARN]", param_hint="--rerank"
        )
    return False if name == NO_RERANKER else name


def _ask_engine(
    engine: str, collection: str | None, db_path: Path | None, asked: Mapping[str, Any], rerank: str | None
) -> dict[str, Any]:
    from ragstack_local.engine_search import answer_from  # noqa: PLC0415 - the other commands start without engines

    around = rerank if rerank and rerank.startswith(BEDROCK_RERANKER) else None
    return answer_from(engine, collection, db_path, asked, around)


def _print_results(answer: Mapping[str, Any], asked: Mapping[str, Any], explain: bool) -> None:
    display.print_results(answer, asked["query"])
    if not answer["results"]:
        for name, hint in _WHERE_NAMES_ARE_LISTED.items():
            if name in asked:
                display.console.print(hint, style="dim")
    if explain:
        display.print_explanation(answer)


def _show(answer: Mapping[str, Any], as_json: bool, show: Callable[[], None]) -> None:
    if as_json:
        display.print_json(answer)
    else:
        show()


def _question(text: str | None, question: str | None) -> str:
    if text is not None and question is not None:
        raise typer.BadParameter("the question is given twice", param_hint="--query")
    words = question if text is None else text
    if words is None:
        raise typer.BadParameter("say what you want to know", param_hint="TEXT")
    return words


def _json(text: str | None, option: str) -> Any:
    try:
        return None if text is None else json.loads(text)
    except ValueError as error:
        raise typer.BadParameter(f"not JSON: {error}", param_hint=option) from error


def _refuse(given: Mapping[str, object], reason: str) -> None:
    for option, value in given.items():
        if value:
            raise typer.BadParameter(reason, param_hint=option)
