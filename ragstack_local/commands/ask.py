"""``ragstack ask``."""

from contextlib import closing
from typing import Annotated

import typer

from ragstack_local.api.calls import each
from ragstack_local.connection.connection import Project
from ragstack_local.connection_options import AsJson, ConnectionOptions, with_options
from ragstack_local.errors import INTERRUPTED, NOTHING_FOUND
from ragstack_local.search_options import AskOptions, EngineOptions
from ragstack_local.show import display
from ragstack_local.show.answers import advise_on_models, last, print_stream
from ragstack_local.show.results import print_hints


@with_options
def ask(
    options: AskOptions,
    engine: EngineOptions,
    stack: ConnectionOptions,
    question: Annotated[str, typer.Argument(help="What you want to know.", show_default=False)],
    as_json: AsJson = False,
) -> None:
    """Answer a question from the documents, with numbered sources; the answer appears while it is written.

    Without a model, the answer quotes the documents. Ctrl-C stops it. --json prints the response of POST /api/ask.

    Example:  ragstack ask "How many days of leave do I have?"

    From a Chroma collection:  ragstack ask "How many days of leave do I have?" -c handbook --db-path chroma

    From one corpus, in another language:  ragstack ask "When is parental leave paid?" --corpus people --language German
    """
    from ragstack_common.services.ask_models import AskRequest  # noqa: PLC0415 - help does without
    from ragstack_common.services.operations import parse_request  # noqa: PLC0415

    request = parse_request(AskRequest, {"question": question, **options.body()})
    try:
        with engine.open(stack) as (operations, roots), closing(each(operations.ask(request))) as events:
            if as_json:
                answer = last(events)
                display.print_json(answer)
            else:
                answer = print_stream(events, roots)
                advise_on_models(answer, Project.find().data)
                if engine.is_api and not answer["sources"]:
                    print_hints(request.model_fields_set)
    except KeyboardInterrupt:
        display.errors.print("Stopped.")
        raise typer.Exit(INTERRUPTED) from None
    if not answer["answered"]:
        raise typer.Exit(NOTHING_FOUND)
