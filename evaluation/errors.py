"""What can go wrong with an evaluation."""

from ragstack_common.errors import RagStackError


class EvaluationError(RagStackError):
    """Nothing can be measured so; the message says what to do."""


class DataSetError(EvaluationError):
    """A data set is not in BEIR's form; the message names file and line."""
