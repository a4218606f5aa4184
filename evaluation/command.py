"""Measure searches, answers, filters and relevance on judged questions, such as samples/judged."""

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar

import typer

from evaluation.setups import AnswerSetup, Setup
from ragstack_common.core.errors import needs_extra
from ragstack_local.connection.connection import Connection, Project
from ragstack_local.show import display
from ragstack_local.stack.processes import raised_interrupts

if TYPE_CHECKING:
    from evaluation.dataset import DataSet
    from evaluation.searching import Engines, Progress
    from evaluation.table import Table

T = TypeVar("T")
EXTRA: Final = ("evaluation", "The evaluation")
MAX_DEPTH: Final = 100

DataFolder = Annotated[
    Path,
    typer.Argument(
        metavar="DATASET",
        help="Folder with corpus.jsonl, queries.jsonl and qrels/; or a CSV file with the columns question and file (or"
        " JSON lines) about documents that are ingested already.",
        show_default=False,
    ),
]
SetupOption = Annotated[
    str, typer.Option("--setup", help=f"Changes of the defaults, such as search=SEMANTIC,infer=yes. {Setup.help()}.")
]
Compare = Annotated[
    list[str] | None,
    typer.Option(help="One more setup, as changes of the first: search=SEMANTIC,rerank=lexical. Repeatable."),
]
Split = Annotated[str, typer.Option(help="Which judgments: the name of a file in qrels/.")]
Queries = Annotated[int | None, typer.Option(help="Only this many queries of each kind.", min=1)]
Cluster = Annotated[
    str | None,
    typer.Option(help="Attribute of the right filter, such as company: intervals resample its values, not queries."),
]
Output = Annotated[
    Path | None, typer.Option(help="Folder of the results. Default: a new one below .ragstack/evaluation/results")
]
Fresh = Annotated[bool, typer.Option("--fresh", help="Delete the index of an earlier run, and ingest again.")]

evaluate = typer.Typer(no_args_is_help=True)


@evaluate.command()
def search(
    dataset: DataFolder,
    setup: SetupOption = "",
    compare: Compare = None,
    depth: Annotated[
        int, typer.Option(help="Documents of each query; 100 measures recall@100 too.", min=10, max=MAX_DEPTH)
    ] = 10,
    split: Split = "test",
    queries: Queries = None,
    cluster: Cluster = None,
    output: Output = None,
    fresh: Fresh = False,
) -> None:
    """Measure how well searches find what people judged to be relevant.

    The collection is ingested into a private local Bedrock and kept for the next run. Each setup answers every query
    with the API's pipeline; a document counts by its best chunk. Differences are to the first setup, query by query; a
    star marks a difference whose 95 % bootstrap interval excludes zero.

    Example:  ragstack eval search samples/judged --compare search=SEMANTIC --compare rerank=lexical

    BM25 alone:  ragstack eval search samples/judged --setup cosine_share=0

    On documents that the running stack has:  ragstack eval search questions.csv --setup engine=stack
    """
    with needs_extra(*EXTRA):
        from evaluation import searching  # noqa: PLC0415 - slow to import, and an extra

    data = _read(dataset, split, queries, cluster)
    setups = _setups(Setup, setup, compare)
    _run(
        data,
        setups,
        lambda engines: searching.measured(engines, setups, depth),
        lambda found: ([searching.table(data, found)], {"setups": searching.details(found)}),
        output,
        fresh=fresh,
    )


@evaluate.command()
def filters(
    dataset: DataFolder,
    setup: SetupOption = "",
    compare: Compare = None,
    split: Split = "test",
    queries: Queries = None,
    cluster: Cluster = None,
    output: Output = None,
    fresh: Fresh = False,
) -> None:
    """Measure what filters gain and cost: each way to filter, with right, nearly right and wrong filters.

    A right filter is metadata.filter of the query, a wrong one has other values, and filters.jsonl may have more kinds.

    Example:  ragstack eval filters samples/judged --compare search=SEMANTIC
    """
    with needs_extra(*EXTRA):
        from evaluation import filters as ways  # noqa: PLC0415 - as above
        from evaluation import searching  # noqa: PLC0415

    data = _read(dataset, split, queries, cluster)
    bases = _setups(Setup, setup, compare)
    setups = ways.setups(data, bases)
    _run(
        data,
        setups,
        lambda engines: searching.measured(engines, setups),
        lambda found: (ways.tables(data, bases, found), {"setups": searching.details(found)}),
        output,
        fresh=fresh,
    )


@evaluate.command()
def answers(
    dataset: DataFolder,
    setup: Annotated[
        str, typer.Option("--setup", help=f"Changes of the defaults, such as top_k=3. {AnswerSetup.help()}.")
    ] = "",
    compare: Compare = None,
    judge: Annotated[
        str | None, typer.Option(metavar="MODEL", help="A model that compares answers with the references.")
    ] = None,
    unanswerable: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="DATASET",
            help="Also ask questions of another data set, which have no answer here. Repeatable.",
        ),
    ] = None,
    without_documents: Annotated[
        bool,
        typer.Option(
            "--without-documents", help="Also ask each question with its relevant documents hidden from the search."
        ),
    ] = False,
    split: Split = "test",
    queries: Queries = None,
    output: Output = None,
    fresh: Fresh = False,
) -> None:
    """Measure answers, as POST /api/ask gives them.

    Example:  ragstack eval answers samples/judged --compare top_k=3

    A model:  ragstack eval answers samples/judged --setup answer_model=qwen3:8b --judge qwen3:8b
    """
    with needs_extra(*EXTRA):
        from evaluation import asking  # noqa: PLC0415 - as above

    data = _read(dataset, split, queries)
    setups = _setups(AnswerSetup, setup, compare)
    foreign = [_read(each, split, None) for each in unanswerable or ()]
    if data.digest in {other.digest for other in foreign}:
        raise typer.BadParameter(f"{data.name} answers its own questions", param_hint="--unanswerable")
    _run(
        data,
        setups,
        lambda engines: asking.measured(engines, setups, foreign, judge, without_documents=without_documents),
        lambda found: (asking.tables(data, found), {"setups": asking.details(found)}),
        output,
        fresh=fresh,
    )


@evaluate.command()
def relevance(
    dataset: DataFolder,
    setup: SetupOption = "",
    also: Annotated[list[Path] | None, typer.Option(metavar="DATASET", help="One more data set. Repeatable.")] = None,
    calibrate: Annotated[
        Path | None, typer.Option(help="Write a calibration fitted to the data sets to this settings file.")
    ] = None,
    split: Split = "test",
    queries: Queries = None,
    output: Output = None,
    fresh: Fresh = False,
) -> None:
    """Measure how reliable relevance is, and whether it recognizes questions without an answer.

    Example:  ragstack eval relevance samples/judged --calibrate settings.json
    """
    with needs_extra(*EXTRA):
        from evaluation import relevance as run  # noqa: PLC0415 - as above
        from evaluation.table import show  # noqa: PLC0415

    sets = [_read(each, split, queries) for each in (dataset, *(also or ()))]
    chosen = Setup.of(setup)
    with _progress() as bars:
        found = run.measured([_engines(data, [chosen], bars, fresh=fresh) for data in sets], chosen)
    show(output or _new_folder(sets[0]), run.tables(found), calibration=found.calibration.model_dump())
    if calibrate is not None:
        run.write_calibration(calibrate, found.calibration)
        display.console.print(f"Settings for a deployment:  {calibrate} (relevance_calibration)", soft_wrap=True)
        display.console.print(f"Deploy them:  npx cdk deploy --all --context settings={calibrate}", soft_wrap=True)


def _run(
    data: "DataSet",
    setups: Sequence[Setup],
    measured: "Callable[[Engines], Iterator[T]]",
    tables: "Callable[[Sequence[T]], tuple[list[Table], dict[str, Any]]]",
    output: Path | None,
    *,
    fresh: bool,
) -> None:
    """Measure one setup after the other; the results of an interrupted run are shown too."""
    from evaluation.table import show  # noqa: PLC0415 - as above

    found: list[T] = []
    try:
        with _progress() as bars, _engines(data, setups, bars, fresh=fresh) as engines:
            for one in measured(engines):
                found.append(one)  # noqa: PERF402 - measurements so far are shown if the next one is interrupted
    finally:
        if found:
            made, details = tables(found)
            dataset = {"name": data.name, "split": data.split, "corpus_sha256": data.digest}
            show(output or _new_folder(data), made, dataset=dataset, queries=[q.id for q in data.queries], **details)


@contextmanager
def _progress() -> "Iterator[Progress]":
    from evaluation.searching import Progress  # noqa: PLC0415 - as above

    with raised_interrupts(), display.progress() as bars:
        yield Progress(bars)


def _engines(data: "DataSet", setups: Sequence[Setup], progress: "Progress", *, fresh: bool) -> "Engines":
    from evaluation.index import Indexing  # noqa: PLC0415 - as above
    from evaluation.searching import Engines  # noqa: PLC0415

    cache = Project.find().data / "evaluation" / "indexes"
    if fresh:
        for each in setups:
            shutil.rmtree(Indexing(each.embedding, each.headers).folder(cache, data), ignore_errors=True)
    return Engines(data, cache, progress, _stack)


def _setups(kind: type[T], setup: str, compare: list[str] | None) -> list[T]:
    first = kind.of(setup)  # type: ignore[attr-defined] # a kind of Setup
    return [first, *(first.changed(changes) for changes in compare or ())]


def _read(folder: Path, split: str, queries: int | None, cluster: str | None = None) -> "DataSet":
    from evaluation import dataset  # noqa: PLC0415

    return dataset.read(folder, split, queries, cluster)


def _new_folder(data: "DataSet") -> Path:
    return Project.find().data / "evaluation" / "results" / f"{data.name}-{datetime.now(UTC):%Y%m%d-%H%M%S}"


def _stack() -> Connection:
    connection = Connection.from_running_stack(Project.find().running)
    display.errors.print(connection.described, style="dim", soft_wrap=True)
    return connection
