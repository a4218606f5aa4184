"""``ragstack build``."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

import typer
from rich.text import Text

from local_bedrock.options import EMBEDDING_HELP, chosen_embedding
from ragstack_common.core.errors import needs_extra
from ragstack_common.settings.knowledge import KnowledgeSettings, with_pooling
from ragstack_common.settings.model_cache import EMBEDDING_VARIABLE
from ragstack_common.settings.search import QuerySettings
from ragstack_local.collections.windows import CHUNK_OVERLAP, CHUNK_SIZE
from ragstack_local.connection_options import not_blank, with_options
from ragstack_local.errors import NOTHING_FOUND
from ragstack_local.files.ingestion import note_skipped
from ragstack_local.files.uploads import select, shown
from ragstack_local.search_options import SettingsOptions
from ragstack_local.show import display


@with_options
def build(
    settings_options: SettingsOptions,
    folder: Annotated[Path, typer.Argument(help="Folder of documents, or one of them.", show_default=False)],
    collection: Annotated[
        str | None, typer.Option("--collection", "-c", help="Default: ATLAS_COLLECTION_NAME or atlas_knowledge_base.")
    ] = None,
    db_path: Annotated[
        Path | None, typer.Option(help="Folder of the database. Default: ATLAS_DB_PATH or ~/atlas_chroma_db.")
    ] = None,
    corpus: Annotated[
        str | None,
        typer.Option(callback=not_blank, help="Corpus of files whose sidecar sets none. Default: the folder's name."),
    ] = None,
    version: Annotated[
        str | None,
        typer.Option(
            callback=not_blank,
            help="Version of files whose sidecar sets none. Default: from the path, such as 3 of docs/v3/intro.md.",
        ),
    ] = None,
    embedding: Annotated[
        str | None,
        typer.Option(
            help=f"{EMBEDDING_HELP} Default: EMBEDDING_MODEL, that of the collection, {EMBEDDING_VARIABLE}, or minilm"
            " if it was added, otherwise hashed."
        ),
    ] = None,
    chunk_size: Annotated[
        int | None, typer.Option(help=f"Maximum characters of a chunk. Default: CHUNK_SIZE or {CHUNK_SIZE}.", min=100)
    ] = None,
    chunk_overlap: Annotated[
        int | None,
        typer.Option(
            help="Maximum characters that a chunk repeats from the previous one. Default: CHUNK_OVERLAP or"
            f" {CHUNK_OVERLAP}.",
            min=0,
        ),
    ] = None,
    manifest_folder: Annotated[
        Path | None,
        typer.Option(
            "--manifest",
            metavar="FOLDER",
            file_okay=False,
            help="Write the manifest to FOLDER/COLLECTION.txt too, such as create/chroma/output.",
        ),
    ] = None,
) -> None:
    """Build a Chroma collection from files, or update it: add new files, replace changed ones, remove deleted ones.

    It needs no stack and no AWS account. The manifest is written to DB_PATH/manifests/COLLECTION.txt.

    Example:  ragstack build handbook/ --collection handbook --db-path ./chroma
    """
    # Slow to import, and an extra, which has everything for most embeddings.
    with needs_extra("chroma", "`ragstack build`"):
        from ragstack_common.embedding import load  # noqa: PLC0415
        from ragstack_common.search.engines.chroma import manifest  # noqa: PLC0415
        from ragstack_local.collections.build import build as bring  # noqa: PLC0415
        from ragstack_local.collections.documents import BuildPlan  # noqa: PLC0415

    settings = KnowledgeSettings.from_env(settings_options.environment(QuerySettings, KnowledgeSettings))
    size = next(given for given in (chunk_size, settings.chunk_size, CHUNK_SIZE) if given is not None)
    overlap = next(given for given in (chunk_overlap, settings.chunk_overlap, CHUNK_OVERLAP) if given is not None)
    if 2 * overlap >= size:
        raise typer.BadParameter("less than half of --chunk-size", param_hint="--chunk-overlap")
    selection = select([folder])
    note_skipped(selection)
    root = folder.expanduser().resolve()
    unread = {_key(fault.path, root): fault.reason for fault in selection.faults}
    if unread and not selection.files:
        _print_failures(unread)
        raise typer.Exit(NOTHING_FOUND)
    store, name = Path(db_path or settings.db_path).expanduser(), collection or settings.collection_name
    given = embedding or manifest.chosen_embedding(settings, manifest.read(name, store))
    choice = with_pooling(chosen_embedding(given), settings.pooling)
    model = load(choice)
    plan = BuildPlan(corpus or root.name, model.name, version, size, overlap, _elsewhere(choice, model.name))
    with display.progress() as bars:
        building = bars.add_task("Building", total=len(selection.files), detail="")
        report = bring(
            selection.files,
            store,
            name,
            plan,
            model,
            folder_name=root.name if root.is_dir() else None,
            unread=unread,
            done=lambda outcome: bars.advance(building, outcome != "removed"),
        )
    _print_failures({failure.source: failure.reason for failure in report.failures})
    assert report.manifest is not None
    counted = ", ".join(f"{number} {outcome}" for outcome, number in report.manifest.last_run.items() if number)
    total = report.manifest.total
    display.console.print(f"{counted or 'nothing to do'}: {total.documents} documents in {total.chunks} chunks")
    display.console.print(Text.assemble(("Embedding ", "dim"), f" {model.name}"), soft_wrap=True)
    copies = [] if manifest_folder is None else [manifest.write_text(report.manifest, manifest_folder.expanduser())]
    for path in (report.manifest_path, *copies):
        display.console.print(Text.assemble(("Manifest  ", "dim"), f" {path}"), soft_wrap=True)
    if report.failures:
        raise typer.Exit(NOTHING_FOUND)


def _key(path: Path, root: Path) -> str:
    """Return the key, as in the collection, of a file or folder that cannot be read."""
    return shown(Path(root.name, path.relative_to(root)) if root.is_dir() else Path(path.name))


def _print_failures(failures: Mapping[str, str]) -> None:
    for source, reason in failures.items():
        display.console.print(Text.assemble(("failed", "red"), f" {source}: {reason}"), soft_wrap=True)


def _elsewhere(choice: str, name: str) -> str:
    """Return a choice of embedding that loads the same model from every folder, with the same pooling.

    It is empty for an address with a password, which is to be given each time: manifests are copied.
    """
    kind, _, argument = choice.partition(":")
    if kind == "openai" and "@" in urlsplit(argument).netloc:
        return ""
    if kind != "onnx":
        return choice
    pooling = name.partition("#")[2]
    folder = argument.removesuffix(f"#{pooling}") if pooling else argument
    return f"onnx:{Path(folder).resolve()}" + (f"#{pooling}" if pooling else "")
