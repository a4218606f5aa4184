"""What can go wrong with an evaluation."""

from ragstack_common.errors import RagStackError


class EvaluationError(RagStackError):
    """Nothing can be measured so; the message says what to do."""


class DataSetError(EvaluationError):
    """A data set is not in BEIR's form; the message names file and line."""


class MissingPackageError(EvaluationError):
    """A package is not installed that only the evaluation needs."""

    def __init__(self, module: str | None) -> None:
        super().__init__(f"The evaluation needs the package {module}: pip install 'ragstack[local,evaluation]'")
