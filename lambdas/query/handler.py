"""Answers searches over HTTP."""

from ragstack_common.function import entry_point, logger, metrics, prepare

import os
from functools import cache
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from aws_lambda_powertools.event_handler import Response, content_types
from aws_lambda_powertools.utilities.typing import LambdaContext

from ragstack_common.access.identity import Callers
from ragstack_common.access.people import People
from ragstack_common.core.snapshots import after_restore
from ragstack_common.http.powertools import Api, NextToken, OfAllCallers, json_answer, serve
from ragstack_common.search.engines.found_store import store_of
from ragstack_common.services.catalogue import Corpora, Versions
from ragstack_common.services.explain_models import ExplainRequest, ExplainResponse
from ragstack_common.services.judged_file_models import JudgedFiles
from ragstack_common.services.search import QueryService
from ragstack_common.services.search_models import RetrieveRequest, RetrieveResponse
from ragstack_common.settings.access import AccessSettings

if TYPE_CHECKING:
    from ragstack_common.services.explain import Explanations
    from ragstack_common.services.judged_files import JudgmentExport
    from ragstack_common.tools import Registry


@cache
def callers() -> Callers:
    """Read the rules on the first request."""
    return Callers.from_env(os.environ, note=People.note_meanwhile)


app = Api(logger, metrics, callers)


@cache
def service() -> QueryService:
    """Build the service on the first request and keep it for the life of the container."""
    return QueryService.from_env(os.environ, metrics)


@cache
def explanations() -> "Explanations":
    """Find the documents on the first request for an explanation; searches do without them."""
    from ragstack_common.services.explain import Explanations  # noqa: PLC0415 - most containers give none

    return Explanations.from_env(os.environ, service())


@cache
def tools() -> "Registry":
    """Build the tools on their first request; searches do without them."""
    from ragstack_common.tools import registry_from_env  # noqa: PLC0415 - most containers run none

    return registry_from_env(os.environ)


@cache
def judgment_export() -> "JudgmentExport":
    """Find the judgments on the first request for them; searches do without them."""
    from ragstack_common.services.judged_files import JudgmentExport  # noqa: PLC0415 - most containers export none

    return JudgmentExport.from_env(os.environ, service())


@serve(app, "retrieve")
def retrieve(request: RetrieveRequest) -> RetrieveResponse:
    """Search with and without the metadata filter in parallel, over every corpus or one, and merge the results."""
    return service().retrieve(request, app.caller)


@serve(app, "explain")
def explain(request: ExplainRequest) -> ExplainResponse:
    """Search as /api/retrieve does, and return the first reason why a document is not among the results."""
    return explanations().explain(request, app.caller)


@serve(app, "corpora")
def corpora() -> Corpora:
    """List the configured corpora, and those to which documents belong."""
    return service().corpora(app.caller)


@serve(app, "versions")
def versions() -> Versions:
    """List the versions of the searchable documents."""
    return service().versions(app.caller)


@serve(app, "export_judgments")
def export_judgments(
    all: OfAllCallers = False,  # noqa: A002 - the name in the query
    next_token: NextToken = None,
) -> JudgedFiles:
    """Write the caller's judgments, or those of all callers, with the passages that searches find, in pages."""
    return judgment_export().page(app.caller, of_all=all, token=next_token)


@serve(app, "list_tools", enable_validation=False)
def list_tools() -> Response[Any]:
    """Describe each tool with the JSON schemas of its input and output."""
    return json_answer(HTTPStatus.OK, {"tools": tools().list()})


@serve(app, "run_tool", enable_validation=False)
def run_tool(name: str) -> Response[Any]:
    """Run one tool on the input in the body."""
    from ragstack_common.tools import run_tool as run  # noqa: PLC0415 - most containers run none

    return json_answer(*run(tools(), name, app.current_event.json_body, app.caller, metrics))


@serve(app, "health")
def health() -> dict[str, str]:
    """Answer ok if the settings are valid; the knowledge base is not called."""
    service()
    return {"status": "ok"}


@serve(app, "openapi")
def openapi() -> Response[str]:
    """Describe the interface, with the routes of the function for documents."""
    from ragstack_common.http.description import describe, find_base_url  # noqa: PLC0415 - seldom requested

    access = AccessSettings.from_env(os.environ)
    description = describe(app, find_base_url(app.current_event.raw_event), access)
    return Response(HTTPStatus.OK, content_types.APPLICATION_JSON, description)


def look_up_stores_again() -> None:
    """Forget the service if it looked up the store of a knowledge base: no failure may last for all copies."""
    if store_of.cache_info().currsize:
        store_of.cache_clear()
        service.cache_clear()


after_restore(look_up_stores_again)
prepare(callers, lambda: service().prepare(), lambda: app.prepare("retrieve"))


@entry_point
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Route a request of API Gateway."""
    metrics.add_metric("Requests", "Count", 1)
    return app.resolve(event, context)
