"""The commands ``ragstack eval`` and ``ragstack tune``."""

import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from local_bedrock.options import EMBEDDING_HELP
from ragstack_common.config import DEFAULT_EMBEDDING
from ragstack_local.show import display
from ragstack_local.stack.processes import raised_interrupts
from ragstack_local.target.connection import Connection, Project

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from evaluation.dataset import DataSet
    from evaluation.searching import Setup

LARGEST_DEPTH: Final = 100
FILTERS: Final = "filters"
RELEVANCE: Final = "relevance"

DataFolder = Annotated[
    Path,
    typer.Argument(
        metavar="DATASET",
        help="Folder with corpus.jsonl, queries.jsonl and qrels/; or a CSV file with the columns question and file (or"
        " JSON lines) about documents that are ingested already.",
        show_default=False,
    ),
]
Split = Annotated[str, typer.Option(help="Which judgments: the name of a file in qrels/.")]
Embedding = Annotated[str, typer.Option(help=EMBEDDING_HELP)]
Headers = Annotated[bool, typer.Option(help="Index chunks with their document's name, title and headings.")]
Queries = Annotated[int | None, typer.Option(help="Only this many queries.", min=1)]
Output = Annotated[
    Path | None, typer.Option(help="Folder of the results. Default: a new one below .ragstack/evaluation/results")
]
Fresh = Annotated[bool, typer.Option("--fresh", help="Delete the index of an earlier run, and ingest again.")]


def evaluate(
    dataset: DataFolder,
    split: Split = "test",
    embedding: Embedding = DEFAULT_EMBEDDING,
    search: Annotated[str, typer.Option(help="HYBRID, SEMANTIC, or KEYWORD: BM25 alone.")] = "HYBRID",
    rerank: Annotated[str, typer.Option(help="none or lexical.")] = "none",
    filter_kind: Annotated[
        str,
        typer.Option(
            "--filter",
            help="none, right (metadata.filter of the queries), wrong (another value), or a kind in filters.jsonl.",
        ),
    ] = "none",
    slices: Annotated[str, typer.Option(help="multislice, or filtered: the filtered search alone.")] = "multislice",
    merge: Annotated[str, typer.Option(help="How multislice merges: trust or boost.")] = "trust",
    boost: Annotated[float, typer.Option(help="With --merge boost: factor on the scores of filtered hits.")] = 1.25,
    infer: Annotated[
        bool | None,
        typer.Option(
            help="Also prefer documents with attribute values that the query names, as the API does. Default: only"
            " with --answers."
        ),
    ] = None,
    contextual_headers: Headers = True,
    engine: Annotated[
        str | None,
        typer.Option(
            help="private: a local Bedrock of its own; stack: the running local stack; bm25s: another program's BM25;"
            " or the file of a retrieval backend's configuration, where the type 'collection' is the private one."
            " Default: private; for a file of questions, stack."
        ),
    ] = None,
    compare: Annotated[
        list[str] | None,
        typer.Option(
            help="One more setup, as changes of the first: search=SEMANTIC,rerank=lexical. normalized=yes spreads the"
            " scores of each search over 0 to 1, as some engines do. Repeatable."
        ),
    ] = None,
    depth: Annotated[
        int, typer.Option(help="Documents of each query; 100 measures recall@100 too.", min=10, max=LARGEST_DEPTH)
    ] = 10,
    spread: Annotated[
        str | None, typer.Option(help="Count the values of this attribute among the first ten documents.")
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(
            help="Attribute of the right filter, such as company: intervals resample its values, not queries."
        ),
    ] = None,
    table: Annotated[
        str | None,
        typer.Option(
            help="filters: each setup in every way to filter, with every kind of filter. relevance: how reliable"
            " relevance is, and whether it recognizes questions without an answer."
        ),
    ] = None,
    also: Annotated[
        list[Path] | None,
        typer.Option(metavar="DATASET", help="With --table relevance: one more data set. Repeatable."),
    ] = None,
    calibrate: Annotated[
        Path | None,
        typer.Option(help="With --table relevance: write a calibration fitted to the data sets to this settings file."),
    ] = None,
    answers: Annotated[
        bool,
        typer.Option(
            "--answers",
            help="Measure answers instead of searches, as POST /api/ask gives them. --compare also takes answer_model,"
            " top_k, context_tokens and answerable_relevance.",
        ),
    ] = False,
    answer_model: Annotated[
        str | None,
        typer.Option(
            help="With --answers: a model of the OpenAI-compatible server at RAGSTACK_LLM_URL, otherwise of Amazon"
            " Bedrock. By default answers quote the documents."
        ),
    ] = None,
    judge: Annotated[
        str | None,
        typer.Option(metavar="MODEL", help="With --answers: a model that compares answers with the references."),
    ] = None,
    unanswerable: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="DATASET",
            help="With --answers: also ask questions of another data set, which have no answer here. Repeatable.",
        ),
    ] = None,
    without_documents: Annotated[
        bool,
        typer.Option(
            "--without-documents",
            help="With --answers: also ask each question with its relevant documents hidden from the search.",
        ),
    ] = False,
    write_documents: Annotated[
        Path | None,
        typer.Option(help="Measure nothing: write the collection into a folder as files for `ragstack ingest`."),
    ] = None,
    queries: Queries = None,
    output: Output = None,
    fresh: Fresh = False,
) -> None:
    """Measure how well searches find what people judged to be relevant.

    The collection is ingested into a private local Bedrock and kept for the next run. Each setup answers every query
    with the API's pipeline; a document counts by its best chunk. Differences are to the first setup, query by query,
    with 95 % bootstrap intervals; a star marks a difference beyond chance.

    Example:  ragstack eval samples/judged --compare search=SEMANTIC --compare rerank=lexical

    Compared with another BM25:  ragstack eval samples/judged --search KEYWORD --compare search=HYBRID,engine=bm25s

    On documents that the running stack has:  ragstack eval questions.csv

    What filters gain and cost:  ragstack eval samples/judged --table filters --compare search=SEMANTIC

    Answers instead of searches:  ragstack eval samples/judged --answers --compare top_k=3
    """
    from evaluation import index  # noqa: PLC0415 - slow to import, and an extra
    from evaluation.searching import Setup  # noqa: PLC0415

    data = _read(dataset, split, queries)
    engine = engine or ("private" if data.has_texts else "stack")
    if not data.has_texts and (engine in ("private", "bm25s") or write_documents is not None or spread is not None):
        raise typer.BadParameter(
            f"{dataset} has questions and no documents: use --engine stack, or the file of a backend's configuration",
            param_hint="DATASET",
        )
    options = {
        "search": search,
        "embedding": embedding,
        "headers": contextual_headers,
        "rerank": rerank,
        "filter": filter_kind,
        "slices": slices,
        "merge": merge,
        "boost": boost,
        "engine": engine,
    }
    of_answers = {"answer_model": answer_model, "judge": judge, "unanswerable": unanswerable}
    if answers:
        of_searches = {"table": table, "also": also, "calibrate": calibrate, "spread": spread, "cluster": cluster}
        _refuse(of_searches | {"write_documents": write_documents}, "measures searches: leave out --answers")
        options |= {"infer": "no" if infer is False else "yes", "answer_model": answer_model}
        foreign = [_read(each, split, None) for each in unanswerable or ()]
        if data.digest in {other.digest for other in foreign}:
            raise typer.BadParameter(f"{data.name} answers its own questions", param_hint="--unanswerable")
        _answers(data, options, compare or (), foreign, judge, output, fresh=fresh, without_documents=without_documents)
        return
    _refuse(of_answers | {"without_documents": without_documents}, "needs --answers")
    first = Setup.of(**options, infer="yes" if infer else "no")
    setups = [first, *(first.changed(changes) for changes in compare or ())]
    if write_documents is not None:
        display.console.print(
            f"{index.write_files(data, write_documents)} documents in {write_documents}", soft_wrap=True
        )
        return
    if table == RELEVANCE:
        others = [_read(each, split, queries) for each in also or ()]
        _relevance([data, *others], first, calibrate, output, fresh=fresh)
        return
    _refuse({"also": also, "calibrate": calibrate}, f"needs --table {RELEVANCE}")
    if table not in (None, FILTERS):
        raise typer.BadParameter(f"there is no table {table}: choose {FILTERS} or {RELEVANCE}", param_hint="--table")
    _searches(data, setups, depth, spread, cluster, output, filters=table == FILTERS, fresh=fresh)


def _refuse(options: "Mapping[str, Any]", reason: str) -> None:
    """Reject options that are given, but do not apply."""
    for name, value in options.items():
        if value:
            raise typer.BadParameter(reason, param_hint=f"--{name.replace('_', '-')}")


def _searches(
    data: "DataSet",
    bases: "Sequence[Setup]",
    depth: int,
    spread: str | None,
    cluster: str | None,
    output: Path | None,
    *,
    filters: bool,
    fresh: bool,
) -> None:
    from evaluation import filter_table, report  # noqa: PLC0415 - as above
    from evaluation.measuring import Plan, Progress  # noqa: PLC0415

    setups = filter_table.setups(data, bases) if filters else bases
    folder = _folder()
    plan = Plan(data, setups, folder / "indexes", depth, _stack, spread, cluster)
    if fresh:
        _forget(data, setups, folder)
    measured = []
    try:
        with raised_interrupts(), display.progress() as bars:
            for one in plan.measured(Progress(bars)):
                measured.append(one)  # noqa: PERF402 - what was measured is shown where the next one is interrupted
    finally:
        if measured:
            results = output or _new_folder(folder, data)
            report.write(results, data, measured)
            if filters:
                filter_table.show(results, filter_table.tables(data, bases, measured))
            else:
                report.print_table(data, measured)
            display.console.print(f"Every figure, the runs and a picture:  {results}", soft_wrap=True)


def _answers(
    data: "DataSet",
    options: "Mapping[str, Any]",
    compare: "Sequence[str]",
    foreign: "Sequence[DataSet]",
    judge: str | None,
    output: Path | None,
    *,
    fresh: bool,
    without_documents: bool,
) -> None:
    from evaluation import answer_report, asking  # noqa: PLC0415 - as above
    from evaluation.measuring import Progress  # noqa: PLC0415

    first = asking.AnswerSetup.of(**options)
    setups = [first, *(first.changed(changes) for changes in compare)]
    folder = _folder()
    if fresh:
        _forget(data, setups, folder)
    plan = asking.AnswerPlan(data, setups, folder / "indexes", foreign, without_documents, judge)
    measured = []
    try:
        with raised_interrupts(), display.progress() as bars:
            for one in plan.measured(Progress(bars)):
                measured.append(one)  # noqa: PERF402 - as above
    finally:
        if measured:
            results = output or _new_folder(folder, data)
            answer_report.show(results, data, measured)
            display.console.print(f"Every figure, the answers and pictures:  {results}", soft_wrap=True)


def _relevance(
    sets: "Sequence[DataSet]", setup: "Setup", calibrate: Path | None, output: Path | None, *, fresh: bool
) -> None:
    from evaluation import relevance_table  # noqa: PLC0415 - as above
    from evaluation.measuring import Progress  # noqa: PLC0415

    folder = _folder()
    if fresh:
        for data in sets:
            _forget(data, [setup], folder)
    with raised_interrupts(), display.progress() as bars:
        table = relevance_table.measured(sets, setup, folder / "indexes", Progress(bars), _stack)
    results = output or _new_folder(folder, sets[0])
    relevance_table.show(results, table)
    display.console.print(f"Every figure, and a picture:  {results}", soft_wrap=True)
    if calibrate is not None:
        relevance_table.write_calibration(calibrate, table.calibration)
        display.console.print(f"Settings for a deployment:  {calibrate} (relevance_calibration)", soft_wrap=True)
        display.console.print(f"Deploy them:  npx cdk deploy --all --context settings={calibrate}", soft_wrap=True)


def tune(
    dataset: DataFolder,
    parameter: Annotated[
        list[str] | None,
        typer.Option(help="cosine_share, filtered_score_boost, reranker.vector, or all. Repeatable."),
    ] = None,
    values: Annotated[str | None, typer.Option(help="What to try of one parameter: 1,1.25,1.5")] = None,
    split: Split = "test",
    embedding: Embedding = DEFAULT_EMBEDDING,
    search: Annotated[str, typer.Option(help="HYBRID or SEMANTIC.")] = "HYBRID",
    wrong_share: Annotated[
        float,
        typer.Option(help="Share of filters assumed to be wrong, for the boost.", min=0, max=1),
    ] = 0.2,
    cluster: Annotated[
        str | None, typer.Option(help="An attribute: queries with the same value are split and resampled together.")
    ] = None,
    write: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write the better values to a JSON file for `ragstack up --settings FILE` and `cdk deploy -c"
            " settings=FILE`.",
        ),
    ] = None,
    take_best: Annotated[
        bool, typer.Option("--take-best", help="Take the best value of each parameter, even if its gain may be chance.")
    ] = False,
    contextual_headers: Headers = True,
    queries: Queries = None,
    output: Output = None,
    fresh: Fresh = False,
) -> None:
    """Vary parameters over results that are retrieved once, and say whether another value beats the default.

    "held out" judges each query by the value that the other half of the queries chose: that is what new queries can
    expect. A value is better if the whole 95 % interval is over 0. It then applies while later parameters are tuned.

    Example:  ragstack tune samples/judged --parameter reranker.vector --values 0.3,1,3

    For a deployment:  ragstack tune samples/judged --write settings.json; ragstack up --settings settings.json
    """
    from evaluation import tuning as run  # noqa: PLC0415 - heavy, and an extra
    from evaluation.index import Indexing  # noqa: PLC0415
    from evaluation.measuring import Progress  # noqa: PLC0415
    from evaluation.searching import Setup  # noqa: PLC0415

    data = _read(dataset, split, queries)
    setup = Setup.of(search=search, embedding=embedding, headers=contextual_headers)
    parameters, numbers = run.chosen(data, parameter or [run.ALL], values, setup.search)
    folder = _folder()
    if fresh:
        _forget(data, [setup], folder)
    indexing = Indexing(embedding, contextual_headers)
    indexes = folder / "indexes"
    tuning = run.Tuning(data, indexing, search, parameters, numbers, wrong_share, indexes, cluster, take_best)
    verdicts = []
    try:
        with raised_interrupts(), display.progress() as bars:
            for verdict in tuning.verdicts(Progress(bars)):
                verdicts.append(verdict)  # noqa: PERF402 - as above
    finally:
        if verdicts:
            run.print_table(data, verdicts)
            results = output or _new_folder(folder, data)
            run.write(results, tuning, verdicts)
            if write is not None:
                names = ", ".join(run.write_settings(write, tuning, verdicts)) or "nothing, because no value is better"
                display.console.print(f"Settings for a deployment:  {write} ({names})", soft_wrap=True)
            display.console.print(f"Every figure, and the curves:  {results}", soft_wrap=True)


def _read(folder: Path, split: str, queries: int | None) -> "DataSet":
    from evaluation import dataset  # noqa: PLC0415

    return dataset.read(folder, split).first(queries)


def _folder() -> Path:
    return Project.find().data / "evaluation"


def _new_folder(folder: Path, data: "DataSet") -> Path:
    return folder / "results" / f"{data.name}-{datetime.now(UTC):%Y%m%d-%H%M%S}"


def _stack() -> Connection:
    connection = Connection.of_running_stack(Project.find().running)
    display.errors.print(connection.described, style="dim", soft_wrap=True)
    return connection


def _forget(data: "DataSet", setups: "Sequence[Setup]", folder: Path) -> None:
    from evaluation.index import Indexing  # noqa: PLC0415

    for setup in setups:
        shutil.rmtree(Indexing(setup.embedding, setup.headers).folder(folder / "indexes", data), ignore_errors=True)
