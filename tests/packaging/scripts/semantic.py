"""Ask fastembed for a model that it does not know: that needs no download."""

from ragstack_common.embedding import EmbeddingError, load

try:
    load("fastembed:no-such-model")
except EmbeddingError as error:
    assert "does not know the model" in str(error), error  # noqa: PT017 - a script, which pytest does not run
else:
    raise AssertionError("there is no such model")
