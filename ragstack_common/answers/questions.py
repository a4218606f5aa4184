"""What a question asks for: its words, and the kind of answer."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Self

from ragstack_common.text.words import detect_language, query_terms, terms, words

LIGHT_WEIGHT: Final = 0.4
"""Weight of words that occur in questions on any subject."""

_LIGHT: Final = frozenset(
    terms(
        "get need happen happens give given gets make made take taken go use used say says mean means want like know"
        " find there"
    )
)
_ASKING: Final = frozenset(
    terms("who what when where why how which whose whom must may might shall do does did can could")
)
_PHRASES: Final = re.compile(
    r"\bhow (?:many|much|long|often|far|old|fast|big|large|soon|late|early|high)\b|['’]s\b"  # noqa: RUF001
    r"|\b(?:please|tell me|show me|give me|explain|describe|according to|means?)\b",
    re.IGNORECASE,
)
"""Parts of a question that say nothing about its subject."""

_NUMBER: Final = (
    r"(?:\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|(?:thir|four|fif|six|seven|eigh|nine)teen"
    r"|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety|hundreds?|thousands?|millions?|billions?|dozens?|half|twice|once|both|none|single|several"
    r"|unlimited|free)\b)"
)
NUMBER: Final = re.compile(_NUMBER, re.IGNORECASE)
"""A digit, or a word for a number."""

_MONEY: Final = (
    r"[$€£¥₹]|\b(?:eur|usd|gbp|chf|euros?|dollars?|pounds?|cents?|francs?|yen|free|percent|price\w*)\b|\d[.,]\d\d\b"
)
_UNIT: Final = r"(?:(?:milli)?seconds?|minutes?|hours?|days?|nights?|weeks?|months?|quarters?|years?|decades?)"
_PERIOD: Final = rf"{_NUMBER}\W+(?:\w+\W+)?{_UNIT}\b|\b\d{{1,2}}[:.]\d\d\b|\b\d{{1,2}} ?[ap]\.?m\b"
_DURATION: Final = (
    rf"{_PERIOD}|\b(?:{_UNIT}|daily|weekly|monthly|yearly|annually|hourly|always|never|immediately|at once|until|since"
    r"|times|every)\b"
)
_MONTH: Final = (
    r"(?:january|february|march|april|may|june|july|august|september|october|november|december"
    r"|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)"
)
_MOMENT: Final = (
    rf"{_PERIOD}|\b(?:1[5-9]|20)\d\d\b|\b\d{{1,2}}(?:st|nd|rd|th)?(?: of)? {_MONTH}\b|\b{_MONTH}\.? \d"
    rf"|\b(?:in|by|within) {_MONTH}\b|\b(?:mon|tues|wednes|thurs|fri|satur|sun)days?\b"
    r"|\b(?:today|tomorrow|yesterday|noon|midnight|morning|afternoon|evening|night|spring|summer|autumn|winter|when"
    r"|whenever|if|after|before|once|until|till|during|while|since|upon|immediately|daily|weekly|monthly|quarterly"
    r"|yearly|every|each|first|last)\b"
)
_PERSON: Final = (
    r"(?-i:(?<=[a-z,;] )[A-Z]\w+)|\b(?:\w+(?:er|or|ist|ian|ee)s?|team|lead|department|office|staff|people|everyone"
    r"|anyone|nobody|company|board|group|desk|hotline)\b"
)
_REASON: Final = (
    r"\b(?:because|since|due to|owing to|so that|therefore|thus|hence|as a result|result\w* (?:in|from)|in order to"
    r"|caus\w+|reasons?|l[ea]+d\w* to|to (?:avoid|prevent|ensure|allow|protect|keep|make))\b"
)
_KINDS: Final[Sequence[tuple[re.Pattern[str], re.Pattern[str]]]] = [
    (re.compile(asking, re.IGNORECASE), re.compile(answer, re.IGNORECASE))
    for asking, answer in (
        (r"\bhow (?:long|often|soon|quickly|fast|late|early|old)\b", _DURATION),
        (r"\b(?:costs?|prices?|fees?|pay)\b|\bhow much\b.{0,200}\b(?:paid|spend|spent|charge)", _MONEY),
        (r"\bhow (?:many|much|far|big|large|high|tall|deep|wide|heavy|hot|cold|thick|expensive)\b", _NUMBER),
        (r"\b(?:when|what time|what date|(?:which|what) (?:year|month|day|date|week|quarter|century))\b", _MOMENT),
        (r"\b(?:who|whom|whose)\b", _PERSON),
        (r"\bwhy\b|\breasons?\b", _REASON),
    )
]
"""What a question contains, and what its answer contains; the first that matches counts."""


@dataclass(frozen=True)
class Question:
    """A parsed question.

    Attributes:
        words: Its terms with their weights, without pairs of characters.
        language: The tag of the language of the passages.
    """

    words: Mapping[str, float]
    language: str
    _answers: re.Pattern[str] | None

    @classmethod
    def of(cls, text: str, language: str | None = None) -> Self:
        """Parse a question in English; of other languages, only the words are understood.

        Args:
            text: The question.
            language: The tag of the language of the passages; by default, that of the question.
        """
        language = language or detect_language(text)
        # A pair of characters would count its characters twice, and against fixed shares of the question.
        found = [term for term in query_terms(_PHRASES.sub(" ", text), language) if len(words(term)) == 1]
        subject = [word for word in found if word not in _ASKING] or found
        kinds = (answers for asks, answers in _KINDS if asks.search(text))
        return cls({word: LIGHT_WEIGHT if word in _LIGHT else 1.0 for word in subject}, language, next(kinds, None))

    def misfits(self, answer: str) -> bool:
        """Whether an answer lacks what the question asks for, such as a number."""
        return self._answers is not None and not self._answers.search(answer)

    def fits(self, answer: str) -> bool:
        """Whether an answer has what the question asks for."""
        return self._answers is not None and bool(self._answers.search(answer))
