"""The deployer's choices with ``cdk --context NAME=VALUE``, checked once and then frozen."""

import math
import re
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Final, TypeVar

from pydantic import Field

from infra.access_options import access_problems, groups_of_people, tenant_problem
from infra.context_values import ContextValues, is_managed
from infra.engine import EngineConfig, creation_problem, is_answer_model, parse_engines
from infra.layers import TRACING, extra_layer
from infra.target import LOCAL_VARIABLES, MANAGED_VARIABLES, Target
from ragstack_common.access.policy import AccessPolicy, read_policy
from ragstack_common.core.errors import ConfigurationError
from ragstack_common.settings.access import NO_ACCESS_FILE, TOKEN_KINDS, AccessSettings, AuthKind
from ragstack_common.settings.answers import AnswerSettings
from ragstack_common.settings.base import Settings, as_text, read_settings
from ragstack_common.settings.conversations import ConversationSettings
from ragstack_common.settings.gaps import GapSettings
from ragstack_common.settings.ingestion import (
    FUNCTION_SETTINGS,
    HIDDEN,
    SET_BY_STACKS,
    WITH_SECRETS,
    IngestionSettings,
)
from ragstack_common.settings.names import EVERY_COLLECTION, MANAGED, MILVUS_ENGINE
from ragstack_common.settings.retriever_tool import RetrieverToolSettings
from ragstack_common.settings.search import QuerySettings
from ragstack_common.settings.tracing import TraceSettings

S = TypeVar("S", bound=Settings)

MAX_CALLS_AT_ONCE: Final = 10
"""Source: Bedrock's quotas, concurrent IngestKnowledgeBaseDocuments and DeleteKnowledgeBaseDocuments requests."""

SETTINGS: Final = "settings"

UNLISTED: Final = frozenset({"api_keys"}) | {name for name in ContextValues.model_fields if name.endswith("_layer")}
"""Not among the settings in force: the names of keys may take most of the environment, and layers are built files."""

CONSOLE_FILES: Final = Path(__file__).parents[1] / "ragstack_local" / "console" / "static"
"""What `make setup` builds from ``web/``."""

CONSOLE_KINDS: Final = frozenset({*TOKEN_KINDS, AuthKind.API_KEY})
"""How callers with a browser authenticate."""


class OptionError(ValueError):
    """Context values are missing, unknown or invalid; the message is one line that says what is allowed."""


class Options(ContextValues):
    """Everything that a deployer can choose."""

    variables_of_functions: Mapping[str, str] = Field({}, description="environment variables that differ from defaults")
    in_force: Mapping[str, Mapping[str, str]] = Field({}, description="what was chosen, by where it was chosen")

    @classmethod
    def from_context(cls, context: Mapping[str, Any]) -> "Options":
        """Read the options.

        Args:
            context: All of the app's context; names that belong to the CDK itself are ignored.

        Raises:
            OptionError: Values are missing, unknown or invalid; the message names all of them.
        """
        values = {name: as_text(value) for name, value in context.items() if _OUR_NAME.fullmatch(name)}
        if values.get("access") == "":
            raise OptionError(
                f"access is empty: give the access file, or access={NO_ACCESS_FILE}, which lets every caller do and see"
                " everything"
            )
        values = {name: text for name, text in values.items() if text}
        in_context = {*values}
        if SETTINGS in values:
            values = {**_read_settings_file(values[SETTINGS]), **values}
        known = context_names()
        if unknown := sorted(values.keys() - known):
            raise OptionError(
                f"context value {' and '.join(map(repr, unknown))} is unknown: choose from {', '.join(sorted(known))}"
            )
        own = {name: text for name, text in values.items() if name in ContextValues.model_fields}
        variables = {name.upper(): text for name, text in values.items() if name not in ContextValues.model_fields}
        problems = ContextValues.problems(own)
        for model in FUNCTION_SETTINGS:
            given = {name: text for name, text in variables.items() if name in model.variables()}
            found = model.problems(given)
            problems |= {name.lower(): problem for name, problem in found.items() if name}
        if problems:
            raise OptionError("; ".join(f"{name}{problem}" for name, problem in problems.items()))
        defaults = {**(LOCAL_VARIABLES if own.get("target") == Target.LOCAL else {})}
        defaults |= MANAGED_VARIABLES if is_managed(own) else {}
        listed = {name: text for name, text in {**own, **variables}.items() if name not in UNLISTED}
        chosen = {name: HIDDEN if name in WITH_SECRETS else text for name, text in listed.items()}
        by_origin = {
            "context": {name: text for name, text in chosen.items() if name.lower() in in_context},
            "settings file": {name: text for name, text in chosen.items() if name.lower() not in in_context},
            "target": {name: text for name, text in defaults.items() if name not in variables},
        }
        in_force = {origin: values for origin, values in by_origin.items() if values}
        options = cls.model_validate({**own, "variables_of_functions": {**defaults, **variables}, "in_force": in_force})
        if broken := access_problems(options, options.access_settings, options.target):
            raise OptionError("; ".join(broken))
        _check_policy(options)
        tenants = options.query.tenant_knowledge_bases
        existing = options.uses_existing_knowledge_base
        if problem := tenant_problem(options, options.policy, tenants, existing=existing, store=options.store):
            raise OptionError(problem)
        _check_search_type(options)
        _check_engines(options)
        _check_console(options)
        return options

    def environment(self, *models: type[Settings]) -> dict[str, str]:
        """Return the variables that the deployer chose for a function with these settings."""
        names = {name for model in models for name in model.variables()}
        return {name: text for name, text in self.variables_of_functions.items() if name in names}

    @property
    def has_people(self) -> bool:
        """Whether people sign in."""
        return bool(TOKEN_KINDS.intersection(self.auth))

    @property
    def console_files(self) -> Path | None:
        """The built console to deploy; None to deploy none."""
        is_useful = self.target is Target.AWS and bool(CONSOLE_KINDS.intersection(self.auth))
        is_wanted = is_useful and _is_built() if self.console is None else self.console
        return CONSOLE_FILES if is_wanted else None

    @cached_property
    def query(self) -> QuerySettings:
        """The settings of the query function; what the stacks set has stand-in values."""
        return self._read(QuerySettings)

    @cached_property
    def access_settings(self) -> AccessSettings:
        """The settings of access; what the stacks set has its defaults."""
        return self._read(AccessSettings)

    @cached_property
    def policy(self) -> AccessPolicy | None:
        """The access file.

        Raises:
            ConfigurationError: It cannot be read, or is invalid.
        """
        return None if self.access_file is None else read_policy(self.access_file)

    @cached_property
    def answers(self) -> AnswerSettings:
        """The settings of answers."""
        return self._read(AnswerSettings)

    @cached_property
    def gaps(self) -> GapSettings:
        """Which questions are kept."""
        return self._read(GapSettings)

    @cached_property
    def conversations(self) -> ConversationSettings:
        """Whether conversations are kept."""
        return self._read(ConversationSettings)

    @cached_property
    def ingestion(self) -> IngestionSettings:
        """The settings of the functions that submit and follow documents; what the stacks set has stand-in values."""
        return self._read(IngestionSettings)

    @cached_property
    def retriever_tool(self) -> RetrieverToolSettings:
        """The settings of the retriever tool."""
        return self._read(RetrieverToolSettings)

    @cached_property
    def tracing(self) -> TraceSettings:
        """Where the functions that search and answer send spans."""
        return self._read(TraceSettings)

    @cached_property
    def engines(self) -> list[EngineConfig]:
        """Engines of the query function other than the knowledge base of the stacks."""
        return parse_engines(self.query, self.retriever_tool)

    @property
    def extra_layers(self) -> dict[str, Path]:
        """The layers that engines and the export of spans need next to the shared ones, by name.

        A layer of the deployer's own, instead of the shared one, has the packages of engines too.
        """
        # Two names can have the same file, which is one layer.
        own = {path: name for name in self.extras if (path := self._own_layers[name])}
        built = "-".join(name for name in self.extras if not self._own_layers[name])
        return {name: path for path, name in own.items()} | ({built: extra_layer(built, self.target)} if built else {})

    @property
    def extras(self) -> list[str]:
        """The names of what is in those layers."""
        of_engines = {name for engine in self.engines for name in engine.extra_layers}
        names = {name for name in of_engines if self._own_layers[name] or not self.dependencies_layer}
        return sorted(names | ({TRACING} if self.tracing.otel_exporter_otlp_endpoint else set()))

    @property
    def _own_layers(self) -> dict[str, Path | None]:
        return {MILVUS_ENGINE: self.milvus_layer, TRACING: self.tracing_layer}

    @property
    def invocations_at_once(self) -> int:
        """Concurrent invocations of a function that calls the knowledge base, 2 to 10: enough for the call rate.

        An invocation makes one call at a time, and waits for its turn if the others make enough of them: without a
        measured duration, as many as Amazon allows adapt to any duration that the service has.
        """
        seconds = self.ingestion_seconds_per_call
        if seconds is None:
            return MAX_CALLS_AT_ONCE
        return min(MAX_CALLS_AT_ONCE, max(2, math.ceil(self.ingestion.calls_per_second * seconds)))

    def _read(self, model: type[S]) -> S:
        required = [name for name, field in model.variables().items() if field.is_required()]
        stand_ins = dict.fromkeys(required, "STANDINVAL")
        if model is QuerySettings:
            stand_ins["KNOWLEDGE_BASE_ID"] = "STANDINVAL"
        return model.from_env({**stand_ins, **self.environment(model)})


def context_names() -> set[str]:
    """Return the names of all context values."""
    variables = {name for model in FUNCTION_SETTINGS for name in model.variables()} - SET_BY_STACKS
    return {*ContextValues.model_fields, *(name.lower() for name in variables)}


def _is_built() -> bool:
    return (CONSOLE_FILES / "index.html").is_file()


def _check_console(options: Options) -> None:
    rules = (
        (options.target is Target.LOCAL, "console=on is for target=aws: `ragstack up` serves the console itself"),
        (
            not CONSOLE_KINDS.intersection(options.auth),
            "console=on needs auth=cognito, oidc or api_key: a browser cannot sign requests with AWS credentials",
        ),
        (not _is_built(), "console=on needs the built console: run `make setup`"),
    )
    if options.console and (problem := next((message for is_broken, message in rules if is_broken), None)):
        raise OptionError(problem)
    if options.console_client_id and AuthKind.OIDC not in options.auth:
        raise OptionError("console_client_id needs auth=oidc: leave it out")
    if options.console_files is None and (options.console_domain or options.console_web_acl):
        name = "console_domain" if options.console_domain else "a web ACL of the scope CLOUDFRONT"
        raise OptionError(f"{name} is for the console: add auth=cognito, oidc or api_key, and run `make setup`")


def _check_policy(options: Options) -> None:
    try:
        if options.policy is not None and AuthKind.COGNITO in options.auth:
            groups_of_people(options.policy)
    except (ConfigurationError, ValueError) as error:
        raise OptionError(f"access={options.access} is invalid: {error}") from error


def _check_search_type(options: Options) -> None:
    chosen = options.query.search_type
    if options.text_search_language and chosen == "SEMANTIC":
        raise OptionError("text_search_language needs searches of words: leave it out, or search_type=SEMANTIC")
    if chosen and options.store == MANAGED:
        raise OptionError(
            f"search_type={chosen} has no meaning for a managed knowledge base, which is always searched by words too:"
            " leave it out, or use knowledge_base=s3_vectors"
        )


def _check_engines(options: Options) -> None:
    _check_retriever_tool(options.retriever_tool, options.target)
    lacking = sorted({name for engine in options.engines for name in engine.lacking})
    if lacking and not options.dependencies_layer:
        raise OptionError(
            f"{' and '.join(lacking)} needs packages that the layer lacks: build a layer with them, and give its zip"
            " file as dependencies_layer"
        )
    if len(options.extras) > 1 and options.milvus_layer != options.tracing_layer:
        raise OptionError(
            "milvus_layer and tracing_layer must be the same zip file, with the packages of both: a function has at"
            " most five layers, and answers needs four"
        )
    for name, model in {
        "answer_model": options.answers.answer_model,
        "answer_fallback_model": options.answers.answer_fallback_model,
        "support_model": options.answers.support_model,
    }.items():
        if model and options.target is Target.AWS and not is_answer_model(model):
            raise OptionError(
                f"{name}={model} is invalid: it must be the id or ARN of a foundation model, an inference profile or"
                " another model of Amazon Bedrock, because the function gets permissions for it"
            )
    has_server = options.retriever_tool.milvus_address or options.target is Target.LOCAL
    for engine in options.engines:
        if engine.lacks_address and not has_server:
            raise OptionError("the engine milvus needs milvus_address, such as milvus.example.com:19530")
        if engine.problem:
            raise OptionError(f"the engine {engine.config['type']} cannot be deployed: {engine.problem}")
    has_engine = options.engines or options.query.retrieval_engine_config
    if has_engine and (problem := creation_problem(options.query, options.retriever_tool)):
        raise OptionError(f"the engine cannot be created: {problem}")


def _check_retriever_tool(tool: RetrieverToolSettings, target: Target) -> None:
    is_milvus = tool.engine == MILVUS_ENGINE
    if EVERY_COLLECTION in tool.retriever_tool_collections and not is_milvus:
        raise OptionError(
            f"retriever_tool_collections={EVERY_COLLECTION} is invalid: it must name the collections, because the"
            " function gets permissions for these"
        )
    if is_milvus and not tool.retriever_tool_collections:
        raise OptionError(
            f"milvus_address needs retriever_tool_collections: name the collections, or write {EVERY_COLLECTION} for"
            " all collections of the database"
        )
    if tool.milvus_address and target is Target.AWS and not _SERVER.match(tool.milvus_address):
        raise OptionError(
            f"milvus_address={tool.milvus_address} is invalid: a deployed function needs the address of a server, such"
            " as milvus.example.com:19530"
        )


def _read_settings_file(name: str) -> dict[str, str]:
    try:
        return {key: as_text(value) for key, value in read_settings(Path(name)).items()}
    except ValueError as error:
        raise OptionError(f"{SETTINGS}={name} is invalid: {error}") from error


_SERVER: Final = re.compile(r"(https?|tcp)://.|[^/:]+:\d+$", re.IGNORECASE)
"""An address of Milvus that other machines reach: no file, and no socket of this machine."""

_OUR_NAME: Final = re.compile(r"[a-z][a-z_]*")
"""Names of the CDK's own context hold a colon, a hyphen, an at sign or an upper case letter."""
