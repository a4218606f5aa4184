"""Questions about something that the passages don't have, but nearly."""

import pytest

from ragstack_common.answers.models.protocol import (
    MIN_CONFIDENCE,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    NumberedPassage,
)
from ragstack_common.answers.quote.extractive import ExtractiveProvider
from ragstack_common.answers.quote.quoting import best_quotations
from ragstack_common.search import RetrievedChunk

PRICES = (
    "sku,product,price_eur,delivery\nQM-WRN-2,Wren 2 soil probe,129.00,3 working days\n"
    "QM-DIP-3,Dipper 3 water level sensor,265.00,1 week"
)
LEVELS = "- Severity 1: customer data has left. The manager is called at once.\n- Severity 3: an attempt that failed."
OTHER = "The canteen serves lunch from noon to two."


def response(question: str, *texts: str, sources: tuple[str, ...] = (), context: str | None = None) -> ModelResponse:
    passages = [
        NumberedPassage(
            number,
            RetrievedChunk(
                content=text,
                source=sources[number - 1] if sources else f"s3://bucket/{number}.md",
                context=context,
                score=0.5,
                relevance=0.3,
            ),
        )
        for number, text in enumerate(texts, start=1)
    ]
    return ExtractiveProvider().generate(ModelRequest([ModelMessage.user(question)], passages=passages))


@pytest.mark.parametrize(
    ("right", "wrong", "text"),
    [
        ("What does the Wren 2 soil probe cost?", "What does the Wren 3 soil probe cost?", PRICES),
        ("What happens at severity 3?", "What happens at severity 4?", LEVELS),
        (
            "How much leave could be carried over from 2025 into 2026?",
            "How much leave could be carried over from 2024 into 2025?",
            "Up to five days of leave could be carried over from 2025 into 2026.",
        ),
        (
            "What is the timeout of a Classic Load Balancer?",
            "What is the timeout of a Gateway Load Balancer?",
            "The timeout of a Classic Load Balancer is 60 seconds.",
        ),
        ("Was kostet die Sonde Wren 2?", "Was kostet die Sonde Wren 3?", "Die Sonde Wren 2 kostet 129 Euro."),
    ],
)
def test_another_number_or_name_is_less_certain_by_half(right: str, wrong: str, text: str) -> None:
    certain, doubtful = (response(question, text, OTHER).end.confidence or 0.0 for question in (right, wrong))

    assert certain >= MIN_CONFIDENCE
    assert doubtful < certain / 1.5
    assert doubtful < MIN_CONFIDENCE


def test_the_title_or_the_name_of_the_document_may_have_the_number() -> None:
    question, text = "How long does a cursor stay valid in version 1 of the API?", "A cursor stays valid for one hour."

    def confidence(source: str, context: str | None) -> float:
        return response(question, text, OTHER, sources=(source, "s3://b/o.md"), context=context).end.confidence or 0.0

    absent = confidence("s3://b/limits.md", "API, version 2")
    assert confidence("s3://b/limits.md", "API, version 1") > absent
    assert confidence("s3://b/api-version-1.md", None) > absent


@pytest.mark.parametrize(
    ("question", "answer", "wrong"),
    [
        (
            "How many listeners can a balancer have?",
            "A balancer can have 50 listeners.",
            "A balancer supports HTTP/2 with HTTPS listeners.",
        ),
        (
            "How many route tables can a gateway have?",
            "A gateway can have 20 route tables.",
            "An attachment of a gateway has a single route table.",
        ),
        (
            "How many species are there?",
            "There are 150 species.",
            "The species of one fossil were found, in GPT-4 and SKU-9201.",
        ),
        ("How long is the leave?", "The leave is twenty weeks.", "The leave has always been so since the merger."),
    ],
)
def test_a_number_answers_only_if_it_counts_the_right_thing(question: str, answer: str, wrong: str) -> None:
    (best, *_) = best_quotations(question, [wrong, answer])
    (only, *_) = best_quotations(question, [wrong])

    assert best.text == answer
    assert only.evidence.misfits > 0


def test_the_entity_of_a_receipt_may_be_in_another_passage_of_the_same_document() -> None:
    total, shop = (
        "SUBTOTAL $863.91\nSales Tax (8.5%) $66.23\nTOTAL $821.14",
        "TECHMART ELECTRONICS\n4567 Innovation Blvd",
    )
    question = "What is the total on the TechMart receipt?"

    same = response(question, total, shop, sources=("s3://b/receipt-1.pdf", "s3://b/receipt-1.pdf"))
    apart = response(question, total, shop, sources=("s3://b/receipt-1.pdf", "s3://b/receipt-2.pdf"))

    one = response(question, f"{shop}\nSan Francisco, CA 94103\n\n{total}", sources=("s3://b/receipt-1.pdf",))
    assert one.content == '"TOTAL $821.14" [1]'
    assert same.content == '"TOTAL $821.14" [1]'
    assert (same.end.confidence or 0) > (apart.end.confidence or 0)
