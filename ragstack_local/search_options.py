"""The options of commands that search: which documents count, and how they are ranked."""

import os
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ragstack_common.core.json_text import parse_json
from ragstack_common.settings.answers import AnswerSettings
from ragstack_common.settings.base import Settings, as_text, read_settings, target_file
from ragstack_common.settings.knowledge import KnowledgeSettings
from ragstack_common.settings.limits import MAX_RESULTS
from ragstack_common.settings.names import BEDROCK_ENGINE, CHROMA_ENGINE, NO_RERANKER, REQUEST_RERANKERS
from ragstack_common.settings.search import QuerySettings
from ragstack_local.connection.roots import Roots
from ragstack_local.connection_options import ConnectionOptions, not_blank

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ragstack_common.services.operations import Operations


class FilterMode(StrEnum):
    """What a filter does to documents that do not match it."""

    PREFER = "prefer"
    STRICT = "strict"


@dataclass(frozen=True)
class SettingsOptions:
    """A file of settings for one command or deployment, by its path or by its name."""

    settings: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="A file of settings: JSON, such as `ragstack eval relevance --calibrate` makes, or NAME=VALUE lines in"
            " a .txt file.",
            show_default=False,
        ),
    ] = None
    settings_name: Annotated[
        str | None,
        typer.Option(
            "--target",
            metavar="NAME",
            help="The settings in targets/NAME.txt or backend/targets/NAME.txt.",
            show_default=False,
        ),
    ] = None

    @property
    def given(self) -> str | None:
        """The option that names the file, if any."""
        return "--settings" if self.settings else "--target" if self.settings_name else None

    def values(self) -> dict[str, str]:
        """Return the settings by the names of context values; none without a file.

        Raises:
            BadParameter: Both options are given, or the file cannot be read.
        """
        if self.settings and self.settings_name:
            raise typer.BadParameter("names a file of settings: give it without --settings", param_hint="--target")
        file = target_file(self.settings_name) if self.settings_name else self.settings
        try:
            return {} if file is None else {name: as_text(value) for name, value in read_settings(file).items()}
        except ValueError as error:
            raise typer.BadParameter(str(error), param_hint=self.given) from error

    def environment(self, *models: type[Settings]) -> dict[str, str]:
        """Return the environment variables, with the settings in their place.

        Raises:
            BadParameter: As above, or one of the settings belongs to none of *models*.
        """
        given = {name.upper(): value for name, value in self.values().items()}
        known = {variable for model in models for variable in model.variables()}
        if unknown := sorted(given.keys() - known):
            raise typer.BadParameter(f"there is no setting {', '.join(unknown)} here", param_hint=self.given)
        return {**os.environ, **given}


@dataclass(frozen=True)
class EngineOptions(SettingsOptions):
    """What to search: the API of the stack, or an engine in this process, with its settings."""

    engine: Annotated[
        str | None,
        typer.Option(
            metavar="bedrock|chroma|FILE.json",
            help="What to search: the API of the stack, a Chroma collection, or the engine that a JSON file describes."
            " Default: chroma with --collection or --db-path, otherwise bedrock.",
        ),
    ] = None
    collection: Annotated[
        str | None,
        typer.Option(
            "--collection",
            "-c",
            help="Search this Chroma collection. Default: ATLAS_COLLECTION_NAME, else atlas_knowledge_base.",
        ),
    ] = None
    db_path: Annotated[
        Path | None, typer.Option(help="Folder of the Chroma collection. Default: ATLAS_DB_PATH or ~/atlas_chroma_db.")
    ] = None

    @property
    def is_api(self) -> bool:
        """Whether the API of a stack searches."""
        return (self.engine or (CHROMA_ENGINE if self.collection or self.db_path else BEDROCK_ENGINE)) == BEDROCK_ENGINE

    @contextmanager
    def open(self, stack: ConnectionOptions, reranker: str | None = None) -> "Iterator[tuple[Operations, Roots]]":
        """Open what searches and answers, and where its documents are on this machine, as far as it is remembered.

        *reranker* is for an engine in this process.

        Raises:
            BadParameter: Options contradict each other.
            ConfigurationError: There is no such engine, or its configuration is unusable.
            StackError: There is no stack.
        """
        if self.is_api:
            self._check_for_api()
            from ragstack_local.api.http_operations import HttpOperations  # noqa: PLC0415 - help does without

            address = stack.address()
            yield HttpOperations(lambda: address), Roots.for_api(address.api_url)
            return
        if stack.aws:
            engine = self.engine or CHROMA_ENGINE
            raise typer.BadParameter(
                f"selects a stack on AWS, but the engine {engine} runs on this machine", param_hint="--aws"
            )
        environment = self.environment(QuerySettings, AnswerSettings, KnowledgeSettings)
        from ragstack_local.api.engine import engine_operations  # noqa: PLC0415 - the API needs no engines

        engine = self.engine or CHROMA_ENGINE
        with engine_operations(engine, self.collection, self.db_path, environment, reranker) as operations:
            yield operations, Roots()

    def _check_for_api(self) -> None:
        for option, value in (("--collection", self.collection), ("--db-path", self.db_path)):
            if value:
                raise typer.BadParameter(f"is for --engine {CHROMA_ENGINE}", param_hint=option)
        if self.given:
            raise typer.BadParameter(
                "needs --engine or --collection: an API has the settings of its deployment", param_hint=self.given
            )


@dataclass(frozen=True)
class QueryOptions:
    """What to search. A command with a parameter of this type, decorated with ``with_options``, has these options."""

    metadata_filter: Annotated[
        str | None,
        typer.Option(
            "--filter",
            help="Prefer matching documents. JSON, for example"
            ' \'{"topic": {"$eq": "travel"}, "year": {"$gte": 2025}}\'.',
        ),
    ] = None
    filter_mode: Annotated[
        FilterMode, typer.Option(help="Rank documents that match --filter higher, or return only them.")
    ] = FilterMode.PREFER
    infer: Annotated[
        bool, typer.Option(help="Also prefer documents with attribute values that the question names.")
    ] = True
    corpus: Annotated[
        str | None,
        typer.Option(
            callback=not_blank,
            help="Only documents of this corpus; all: each corpus gives the same number of candidates.",
        ),
    ] = None
    doc_version: Annotated[
        str | None, typer.Option(callback=not_blank, help="Only documents of this version. See `ragstack versions`.")
    ] = None
    top_k: Annotated[
        int | None,
        typer.Option(
            help="Maximum documents. Default: 5; SEARCH_K (10) for answers, with --corpus and with configured corpora.",
            min=1,
            max=MAX_RESULTS,
        ),
    ] = None

    def body(self) -> dict[str, Any]:
        """Return the members of a request that differ from the API's defaults.

        Raises:
            BadParameter: The filter is not JSON.
        """
        members = {
            "metadata_filter": self._filter(),
            "filter_mode": None if self.filter_mode is FilterMode.PREFER else self.filter_mode.value,
            "infer_filter": None if self.infer else False,
            "corpus_filter": self.corpus,
            "version_filter": self.doc_version,
            "top_k": self.top_k,
        }
        return {name: value for name, value in members.items() if value is not None}

    def _filter(self) -> Any:
        try:
            return None if self.metadata_filter is None else parse_json(self.metadata_filter)
        except ValueError as error:
            raise typer.BadParameter(f"not JSON: {error}", param_hint="--filter") from error


def _known_reranker(name: str | None) -> str | None:
    if name not in (None, NO_RERANKER, *REQUEST_RERANKERS):
        raise typer.BadParameter(f"{name!r} is not one of {', '.join((NO_RERANKER, *REQUEST_RERANKERS))}")
    return name


@dataclass(frozen=True)
class AskOptions(QueryOptions):
    """What to answer from, and how."""

    rerank: Annotated[
        str | None,
        typer.Option(
            callback=_known_reranker,
            metavar="|".join((NO_RERANKER, *REQUEST_RERANKERS)),
            help="Reranker of the search. Default: the API's own configuration.",
        ),
    ] = None
    language: Annotated[
        str | None,
        typer.Option(
            callback=not_blank,
            help="Language of the answer, such as German or pt-BR. Default: that of the question.",
        ),
    ] = None

    check_support: Annotated[
        bool,
        typer.Option("--check-support", help="Let the model judge whether the cited passages say what it wrote."),
    ] = False
    rewrite_question: Annotated[
        bool | None,
        typer.Option(
            "--rewrite-question/--no-rewrite-question",
            help="Make a follow-up such as `And in Germany?` self-contained by the model, or search it as it is."
            " Default: complete it by the question before, without the model.",
            show_default=False,
        ),
    ] = None
    min_confidence: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=1,
            help="Without a model: show quotations with less confidence as the closest passages. Default: 0.6.",
        ),
    ] = None

    def body(self) -> dict[str, Any]:
        """Return the members of a request to answer; errors are as for a search."""
        members = {
            "rerank": False if self.rerank == NO_RERANKER else self.rerank,
            "language": self.language,
            "check_support": self.check_support or None,
            "rewrite_question": self.rewrite_question,
            "min_confidence": self.min_confidence,
        }
        return super().body() | {name: value for name, value in members.items() if value is not None}
