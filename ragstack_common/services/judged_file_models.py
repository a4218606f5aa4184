"""The files of a data set of judgments, as the API returns them."""

from typing import Final

from pydantic import BaseModel, Field

QUERIES: Final = "queries.jsonl"
CORPUS: Final = "corpus.jsonl"
QRELS: Final = "qrels/test.tsv"
QUESTIONS: Final = "questions.csv"
FILES: Final = (QUERIES, CORPUS, QRELS, QUESTIONS)


class JudgedFiles(BaseModel, defer_build=True):
    """A page of a data set."""

    files: dict[str, str] = Field(description=f"What to append to each file of the data set: {', '.join(FILES)}")
    left_out: list[str] = Field(description="Judged documents of which searches find no passage")
    documents_left: int = Field(description="Number of judged documents on the following pages")
    next_token: str | None = Field(description="Requests the next page; null on the last page")
