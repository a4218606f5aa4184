"""Make a follow-up question self-contained before it is searched, such as "And in Germany?"."""

# ruff: noqa: RUF001 - words of several languages

import asyncio
import re
from collections.abc import Mapping, Sequence
from typing import Final

from ragstack_common.answers.models.protocol import ModelMessage, ModelProvider, text_up_to
from ragstack_common.answers.prompt import last_turns, rewriting_request
from ragstack_common.answers.quote.kinds import expected
from ragstack_common.answers.quote.questions import parse_question
from ragstack_common.core.deadline import inner_deadline, seconds_left
from ragstack_common.core.errors import GenerationError
from ragstack_common.text.languages import ENGLISH
from ragstack_common.text.words import detect_language, terms, words

REWRITE_SECONDS: Final = 10.0
HISTORY_TOKENS: Final = 1_000
MAX_QUESTION: Final = 1_000
"""Characters of a rewritten question; a longer text is not a question."""

MAX_OWN_WORDS: Final = 2
"""Words about a subject in a follow-up with a pronoun."""

MAX_ELLIPTICAL_WORDS: Final = 4
"""Words about a subject in a follow-up that begins with a phrase such as "And" or "What about"."""

_OPENER: Final = re.compile(
    r"\s*¿?(?:(?:and|or|und|oder|et|ou|y|e|ed|(?P<o>o(?! que| qual))|(?P<en>en)|of(?! wh| the)|och|og|а|и|или)\s+"
    r"(?:what |how )?(?:about )?"
    r"|(?:what|how) about "
    r"|(?:und )?(?:was ist|wie ist es|wie sieht es) (?:mit|bei|in) |qu'en est-il (?:de |du |des )?"
    r"|qué (?:hay de|pasa con) "
    r"|hoe zit het met |e quanto a |(?:а )?(?:как|что) (?:насч[её]т|с) |(?:و)?ماذا عن |那么?|では)",
    re.IGNORECASE,
)
_NO_OPENER_IN: Final = {"o": frozenset(["pt", "fr"]), "en": frozenset(["fr", "es", "sv", "da", "no"])}
"""Languages in which a word that opens follow-ups elsewhere begins whole questions, such as "En quelle année"."""

_REFERENCE: Final[Mapping[str, re.Pattern[str]]] = {
    language: re.compile(rf"\b(?:{pronouns})", re.IGNORECASE)
    for language, pronouns in {
        ENGLISH: r"(?:it|its|they|them|their|that|this|these|those|he|she|him|her|his|then|instead|afterwards)\b",
        # Not articles, "es gibt", and the formal Sie; "das" is an article before a noun, with a capital letter.
        "de": r"(?:er|dies\w*|dafür|davon|dort|dann|darauf|damit|dazu|danach|stattdessen|(?-i:sie|ihn|ihm|ihr))\b"
        r"|(?<!gibt )es\b(?! gibt)|das\b(?-i:(?!\s+(?:[a-zäöüß]+(?:e|en|er|es)\s+)?[A-ZÄÖÜ\d]))",
        "fr": r"(?:(?<!faut-)(?<!a-t-)il(?! y | faut)|elle|ils|elles|cela|ça|celui|celle|leur)\b",
        "es": r"(?:eso|esto|ello|ellos|ellas|él|ella|allí|entonces)\b",
        "pt": r"(?:isso|isto|ele|ela|eles|elas|lá|então)\b",
        "it": r"(?:esso|essa|ciò|questo|quello|loro|lì|allora)\b",
        "nl": r"(?:hij|zij|ze|daar|dan|daarna|daarvoor)\b|(?:het|dat|dit)(?=\W*\Z)",
        "ru": r"(?:он|она|оно|они|это|этого|этому|там|тогда|его|её|ее|их)\b",
    }.items()
}
"""Pronouns for the subject of the previous question; in other languages, every short question is a follow-up."""

_NUMERIC: Final = re.compile(r"\d")
_NUMBER: Final = re.compile(
    r"(?:\b(?P<word>[^\W\d_]+)\s+(?:(?:the|el|dem|den|het)\s+)?)?"
    r"(?:(?:year|jahre?|année|año|ano|anno|jaar|år|год[ау]?)\s+(?:de\s+)?)?"
    r"(?<![a-z\d.,-])(?P<number>\d+(?:[.,:/-]\d+)*)(?:\s+год[ау]?\b|年?呢|年?は|년은)?",
    re.IGNORECASE,
)
"""A number with the words around it that add nothing: a preposition before it, and "year"."""

_COMPARING: Final = frozenset(
    [
        *["before", "after", "since", "until", "vor", "nach", "seit", "bis", "ab", "avant", "après", "depuis"],
        *["antes", "después", "desde", "hasta", "depois", "até", "prima", "dopo", "fino", "voor", "na", "sinds"],
        *["tot", "vanaf", "före", "efter", "sedan", "до", "после", "с"],
    ]
)
"""Words that change what a number means."""

_NUMBERED: Final = re.compile(r"\b([^\W\d_]+)\s+(\d[\w.]*)")


async def self_contained(
    question: str, history: Sequence[ModelMessage], provider: ModelProvider, seconds: float, *, by_model: bool = True
) -> tuple[str | None, str | None]:
    """Rewrite a question by the model; without one, or if it fails, complete a follow-up from the previous question.

    Args:
        question: The question.
        history: The conversation before it, oldest first.
        provider: The model; providers that quote are not called.
        seconds: Time until the deadline of the answer.
        by_model: Whether the model is called.

    Returns:
        The question to search, None if it is unchanged; and a remark if the model failed.
    """
    if not history:
        return None, None
    remark = None
    if by_model and not provider.quotes:
        try:
            return await _by_model(question, history, provider, seconds), None
        except (GenerationError, TimeoutError) as error:
            remark = f"The model did not rewrite the question ({str(error) or 'it took too long'}): its words were used"
    return with_subject(question, history), remark


async def _by_model(
    question: str, history: Sequence[ModelMessage], provider: ModelProvider, seconds: float
) -> str | None:
    request = rewriting_request(question, last_turns(history, HISTORY_TOKENS))
    limit = max(0.0, min(REWRITE_SECONDS, seconds_left(seconds) / 2))
    with inner_deadline(limit):
        async with asyncio.timeout(limit):
            text = await text_up_to(MAX_QUESTION, provider.stream(request))
    if len(text) > MAX_QUESTION:
        return None
    line = next((line.strip() for line in text.splitlines() if line.strip()), "").strip('"“”«» ')
    return line if line and line != question.strip() else None


def with_subject(question: str, history: Sequence[ModelMessage]) -> str | None:
    """Complete a follow-up from the previous question; None if it has a subject of its own.

    "And in 2025?" after "How long is parental leave?" becomes "How long is parental leave in 2025?". A follow-up that
    asks something else, such as "Who pays for it?", gets the words that it lacks. If the previous question is a
    follow-up too, only its numbers are kept.
    """
    asked = [" ".join(turn.content.split()) for turn in history if turn.role == "user"]
    subject = ""
    for earlier in asked:
        if not subject or not is_follow_up(earlier):
            subject = earlier
        elif _NUMERIC.search(earlier):
            subject = _completed(earlier, subject) or subject
    return _completed(question, subject) if subject and is_follow_up(question) else None


def is_follow_up(question: str) -> bool:
    """Whether a question is hardly understandable without the previous one."""
    own = len(parse_question(question).words)
    if _opener(question):
        return own <= MAX_ELLIPTICAL_WORDS
    if own > MAX_OWN_WORDS:
        return False
    return not own or detect_language(question) not in _REFERENCE or _refers_back(question)


def names_no_subject(question: str) -> bool:
    """Whether it is certain that a question needs the previous one; a short one without pronouns may be complete."""
    own = len(parse_question(question).words)
    if _opener(question):
        return own <= MAX_ELLIPTICAL_WORDS
    is_bare = not own and detect_language(question) in _REFERENCE
    return is_bare or (own <= MAX_OWN_WORDS and _refers_back(question))


def _opener(question: str) -> re.Match[str] | None:
    opener = _OPENER.match(question)
    others = _NO_OPENER_IN.get(opener.lastgroup or "", ()) if opener else ()
    return None if detect_language(question) in others else opener


def _refers_back(question: str) -> bool:
    pronouns = _REFERENCE.get(detect_language(question))
    return pronouns is not None and pronouns.search(question) is not None


def _completed(question: str, subject: str) -> str | None:
    """Return the previous question with the change that a follow-up names; or the follow-up with the words it lacks."""
    opener = _opener(question)
    if opener and expected(question, detect_language(question)) is None and not _refers_back(question):
        return _changed(subject, question[opener.end() :].strip(" ?\u00bf\uff1f.!"))
    return _with_words(question, subject)


def _changed(subject: str, change: str) -> str:
    """Replace the number or the place in a question by the one in a change, or add the change at the end."""
    before = subject.rstrip(" ?.!\uff1f")
    mark = subject[len(before) :].strip()
    for word, number in _NUMBERED.findall(change):
        before, count = re.subn(rf"\b({re.escape(word)}\s+)\d[\w.]*", rf"\g<1>{number}", before, flags=re.IGNORECASE)
        if count:
            return f"{before}{mark}"
    if number := _NUMBER.search(change):
        alike = [each for each in _NUMBER.finditer(before) if _is_year(each["number"]) == _is_year(number["number"])]
        if alike and (number["word"] or "").lower() in _COMPARING:
            before = f"{before[: alike[-1].start()].rstrip()} {before[alike[-1].end() :].lstrip()}".rstrip()
        elif alike:
            # Only the number: "of 2024" stays "of 2025", whichever preposition the follow-up has.
            start, end = alike[-1].span("number")
            rest = " ".join(f"{change[: number.start()]} {change[number.end() :]}".split())
            added = f" {rest}" if parse_question(rest).words else ""
            return f"{before[:start]}{number['number']}{before[end:]}{added}{mark}"
    elif place := re.match(r"(\w+)\s+(?=[^\W\d_])", change):
        # "in Lisbon" replaces "in London", a name or number after the same preposition.
        there = re.search(rf"\b{re.escape(place[1])}\s+(?:[A-ZÀ-ÞА-ЯЁ][\w-]*\s*)+", before)
        if there:
            return f"{before[: there.start()]}{change} {before[there.end() :]}".rstrip() + mark
    return f"{before} {change}{mark}"


def _is_year(number: str) -> bool:
    return re.fullmatch(r"(?:19|20)\d\d", number) is not None


def _with_words(question: str, subject: str) -> str | None:
    """Add the words of the previous question that a follow-up lacks, but its numbers only if the follow-up has none."""
    own, asked = parse_question(question), parse_question(subject)
    has_number = any(word.isdecimal() for word in words(question))
    kept = []
    for word in words(subject):
        if has_number and word.isdecimal():
            continue
        (term, *_) = terms([word], asked.language)
        if term in asked.words and term not in own.words and word not in kept:
            kept.append(word)
    return f"{question.strip()} {' '.join(kept)}" if kept else None
