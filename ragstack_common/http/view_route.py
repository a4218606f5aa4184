"""The routes that show documents; the viewer's function has no others."""

from collections.abc import Callable
from typing import Annotated, Final

from aws_lambda_powertools.event_handler import APIGatewayRestResolver
from aws_lambda_powertools.event_handler.openapi.params import Query

from ragstack_common.access.callers import Caller
from ragstack_common.http.powertools import MAX_PARAMETER_CHARACTERS, serve
from ragstack_common.services.view import DocumentView, Viewer, ViewRequest

_MARKS: Final = r"^[0-9]{1,4}-[0-9]{1,4}(,[0-9]{1,4}-[0-9]{1,4}){0,49}$"


def add_view(app: APIGatewayRestResolver, viewer: Callable[[], Viewer], caller: Callable[[], Caller]) -> None:
    """Add the routes; the viewer is called with each request."""

    @serve(app, "view")
    def view(request: ViewRequest) -> DocumentView:
        """Show a page of a PDF as an image, or the text of another document, and where the texts are in it."""
        return viewer().view(caller(), request)

    @serve(app, "view_region")
    def view_region(
        uri: Annotated[str, Query(min_length=1, max_length=MAX_PARAMETER_CHARACTERS, description="The s3:// URI")],
        passage: Annotated[
            str,
            Query(
                min_length=1,
                max_length=MAX_PARAMETER_CHARACTERS,
                description="Words of the document with some of those before and after them",
            ),
        ],
        marks: Annotated[
            str, Query(pattern=_MARKS, description="Offsets in the passage of the words to mark, 12-50,60-98")
        ],
        page: Annotated[int | None, Query(ge=1, description="The page near which to look first")] = None,
    ) -> DocumentView:
        """Follow the `picture` of a result or source: show the part of a page around its words."""
        return viewer().view(caller(), ViewRequest.of_link(uri, page, passage, marks))
