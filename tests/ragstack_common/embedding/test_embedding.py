"""Loading an embedding by name, the hashed embedding, and the checks of a model's output."""

import hashlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragstack_common import embedding
from ragstack_common.embedding import EmbeddingError, HashedEmbedding, hashed
from ragstack_common.embedding.protocol import unit
from ragstack_common.text.languages import STOP_WORDS

# Collections have such vectors, and record the embedding's name: a change needs another name.
KNOWN = {
    "Herons stand, ähnlich wie Störche.": [-0.6059, -0.4189, 0.5362, -0.1676, 0.3016, 0.1005, -0.1843, -0.0815],
    "the": [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, -1.0, 0.0],
    "photosynthesis photosynthetic": [-0.0486, 0.8036, 0.1258, 0.4261, -0.2064, 0.3003, 0.1258, 0.0772],
    "\uff21\uff22\uff23 ﬁne Straße STRASSE": [-0.7651, 0.0, 0.3817, 0.0715, 0.1414, 0.3633, -0.3118, -0.1211],
    "error_code=E1234 in v2.0.1": [0.65, -0.4076, 0.0186, 0.1492, -0.3729, -0.1119, -0.1492, -0.4636],
    "met ra se va time pressure volume temperature energy density surface gradient matrix index vector tensor scalar": [
        -0.6195,
        0.195,
        0.2865,
        0.5667,
        0.3619,
        0.1722,
        -0.0754,
        0.0927,
    ],
    "Le remboursement des frais ED CI": [-0.191, 0.2056, 0.4754, 0.0, -0.3726, -0.7307, 0.0771, 0.1285],
    "com ca va care bin ten a men": [-0.4637, 0.4637, -0.4811, -0.121, -0.121, -0.383, -0.2419, -0.3226],
    "Стоимость поездки a hotel": [-0.0106, -0.0636, -0.1272, 0.0636, 0.0636, 0.6664, -0.6043, -0.4029],
    "ไม่มี ณ กรุงเทพ ก็ ดี": [0.3553, -0.0273, -0.3279, 0.0, -0.8198, 0.1366, -0.0, 0.2733],
    "한국어 문서의 내용 the": [-0.1009, 0.6727, 0.0, -0.4372, 0.1682, -0.2691, -0.2331, -0.4372],
    "कर्मचारी को यात्रा की लागत": [0.4569, 0.3198, 0.5919, 0.3655, 0.3046, 0.1828, 0.1828, -0.2132],
    "東京都 と 大阪府": [0.0, -0.4264, 0.0, 0.0, -0.2132, 0.2132, -0.8528, 0.0],
}


@pytest.mark.parametrize(("text", "vector"), KNOWN.items())
def test_hashed_vectors_never_change(text: str, vector: list[float]) -> None:
    assert np.allclose(HashedEmbedding(8).embed([text])[0], vector, atol=1e-4)


def test_the_stop_words_of_hashed_vectors_never_change() -> None:
    """Other stop words would give other vectors to the texts of collections that exist."""
    tables = repr([(tag, sorted(STOP_WORDS[tag])) for tag in hashed.LANGUAGES])

    digest = hashlib.sha256(tables.encode()).hexdigest()

    assert digest == "98f4a640a4af315c7189befcf2577e0f4bcad643107f5d8ef00891157db0921a"


@given(st.lists(st.text(max_size=200), max_size=5))
@settings(deadline=None)
def test_vectors_have_unit_length_or_are_zero(texts: list[str]) -> None:
    vectors = HashedEmbedding().embed(texts)

    lengths = np.linalg.norm(vectors, axis=1)
    assert vectors.shape == (len(texts), 1024)
    assert np.all(np.isclose(lengths, 1, atol=1e-5) | (lengths == 0))


def test_the_default_embedding_imports_no_model_library() -> None:
    program = (
        "import sys\n"
        "from ragstack_common import embedding\n"
        "embedding.load('hashed').embed(['heron'])\n"
        "print(sorted({'onnxruntime', 'tokenizers', 'fastembed', 'openai', 'boto3'} & set(sys.modules)))"
    )

    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert ended.stdout.strip() == "[]"


@pytest.mark.parametrize("choice", ["", "magic", "hashed:", "onnx", "onnx:", "openai", "bedrock:", "Hashed"])
def test_an_unknown_embedding_is_an_error_that_lists_the_known_ones(choice: str, tmp_path: Path) -> None:
    with pytest.raises(EmbeddingError) as caught:
        embedding.load(choice, tmp_path)

    assert str(caught.value) == (
        f"There is no embedding {choice!r}: choose hashed, minilm[#POOLING], granite[#POOLING], fastembed[:MODEL],"
        " onnx:FOLDER[#POOLING], openai:URL#MODEL or bedrock:MODEL"
    )


@pytest.mark.parametrize(
    ("name", "option"),
    [
        ("hashed", "--embedding hashed"),
        ("fastembed:BAAI/bge-small-en-v1.5", "--embedding fastembed:BAAI/bge-small-en-v1.5"),
        ("onnx:mini@0123456789ab", "--embedding onnx:FOLDER with the unchanged folder mini"),
        (
            "onnx:mini@0123456789ab#mean+max",
            "--embedding onnx:FOLDER#mean+max with the unchanged folder mini",
        ),
        ("openai:nomic", "--embedding openai:URL#nomic"),
        ("bedrock:amazon.titan-embed-text-v2:0", "--embedding bedrock:amazon.titan-embed-text-v2:0"),
    ],
)
def test_a_stored_name_gives_the_command_line_option(name: str, option: str) -> None:
    assert embedding.flag(name) == option


@pytest.mark.parametrize(
    ("vectors", "words"),
    [
        ([[1.0, 2.0]], "shape (1, 2) for 2 texts"),
        ([[1.0, 2.0], [1.0]], "did not return one list of numbers"),
        ([None, None], "did not return one list of numbers|shape"),
        ([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]], "3 dimensions where it returned 2 before"),
        ([[1.0, float("nan")], [1.0, 2.0]], "values that are not finite numbers"),
        ([[], []], "shape (2, 0)"),
    ],
)
def test_the_output_of_a_model_is_checked(vectors: Any, words: str) -> None:
    with pytest.raises(EmbeddingError) as caught:
        unit(vectors, rows=2, dimension=2, source="The model")

    assert any(part in str(caught.value) for part in words.split("|"))
