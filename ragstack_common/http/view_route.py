"""The route that shows documents; the viewer's function has no other."""

from collections.abc import Callable

from aws_lambda_powertools.event_handler import APIGatewayRestResolver

from ragstack_common.access.callers import Caller
from ragstack_common.http.powertools import serve
from ragstack_common.services.view import DocumentView, Viewer, ViewRequest


def add_view(app: APIGatewayRestResolver, viewer: Callable[[], Viewer], caller: Callable[[], Caller]) -> None:
    """Add the route; the viewer is called with each request."""

    @serve(app, "view")
    def view(request: ViewRequest) -> DocumentView:
        """Show a page of a PDF as an image, or the text of another document, and where the texts are in it."""
        return viewer().view(caller(), request)
