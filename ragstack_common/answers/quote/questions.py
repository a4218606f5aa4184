"""What a question asks for: its words, and the kind of answer."""

# ruff: noqa: E501, RUF001 - tables of words, of several scripts

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from ragstack_common.answers.quote.kinds import Expected, expected
from ragstack_common.text.words import detect_language, query_terms, terms, words

_LIGHT: Final = frozenset(
    term
    for language, common in {
        "en": "get need happen happens give given gets make made take taken go use used say says mean means want like"
        " know find there",
        "de": "art begriff bezeichnung bezeichnet genannt heißen heißt hieß hießen lautet lautete lauten laut name namen nennt nannte"
        " typ teil bedeutet bedeuten gibt gab geben geht ging macht machen tun getan bekommt bekam erhält erhielt finden"
        " findet fand nimmt nahm verwendet verwenden benutzt benutzen wollen sollen können könnte dürfen müssen hält steht"
        " stand sagt sagen weiß wissen brauche brauchen beim habe haben hatten wurden worden weil etwa mehr wem wen wessen wie"
        " wohin woher womit wozu wodurch worum worin wofür ihm ihn ihrer seiner seinen diesen jemand",
        "ru": "название назвал называется называют называли назывался называлась назван имя вид тип термин слово значит означает"
        " использовать использует используется использовался делать делает сделал сделать стать стал стала стали получить"
        " получил находится находился иметь имеет имели имел дать дал дает взять можно нужно надо должен сказать"
        " говорит происходит произошло случилось кого кому кем чья чье чей куда откуда насколько каким какими каком какому какую",
        "ar": "اسم أسماء يسمى تسمى سمي نوع أنواع عدد مصطلح كلمة معنى يعني تعني يشير شيء أشياء شخص قال يقال سبب طريقة"
        " هدف استخدم يستخدم تستخدم حدث يحدث وجد يوجد توجد جعل أعطى حصل أخذ",
        "hi": "नाम प्रकार शब्द संख्या समय चीज व्यक्ति बात कारण तरीका उपयोग प्रयोग कहा कहते जाना बना बनाया मिला मिले दे देना"
        " लेना पाया बताया हुआ रखा",
    }.items()
    for term in terms(common, language)
)
"""Words of questions on any subject."""

_ASKING: Final = frozenset(
    terms("who what when where why how which whose whom must may might shall do does did can could")
)
_NUMERIC: Final = re.compile(r"\d")
_INEXACT: Final = re.compile(r"\d+(?:s|st|nd|rd|th)")
"""A decade or an ordinal, which texts also write as words."""

_NAME: Final = re.compile(r"(?<=[^.!?:\s\"“«„(] )(?-i:[A-ZÀ-ÖØ-ÞА-ЯЁΑ-Ω])[\w'’-]*|(?<=[^.!?:\s\"“«„(] )\w+[A-Z]\w*")
_PHRASES: Final = re.compile(
    r"\bhow (?:many|much|long|often|far|old|fast|big|large|soon|late|early|high)\b|['’]s\b"
    r"|\b(?:please|tell me|show me|give me|explain|describe|according to|means?)\b",
    re.IGNORECASE,
)
"""Parts of a question that say nothing about its subject."""


@dataclass(frozen=True)
class ParsedQuestion:
    """A question as quotations are compared with it.

    Attributes:
        words: Its terms with their weights, without pairs of characters.
        language: The tag of the language of the passages.
        expected: What the answer must contain, if that is known.
        numbers: The numbers, each with the stem of the word before it, such as row 2; that is empty in "in 2024".
        names: The stems of words with a capital letter within a sentence; none in German, where all nouns have one.
    """

    text: str
    words: Mapping[str, float]
    language: str
    expected: Expected | None
    numbers: frozenset[tuple[str, str]]
    names: frozenset[str]


def parse_question(text: str, language: str | None = None) -> ParsedQuestion:
    """Parse a question about passages in a language; by default, that of the question."""
    language = language or detect_language(text)
    # A pair of characters would count its characters twice, and against fixed shares of the question.
    found = [term for term in query_terms(_PHRASES.sub(" ", text), language) if words(term) == [term]]
    subject = [word for word in found if word not in _ASKING] or found
    answer = expected(text, detect_language(text), language)
    light = _LIGHT if answer is None else _LIGHT.union(terms(list(answer.asking), language))
    weights = {word: 0.4 if word in light else 1.0 for word in subject}
    numbers = frozenset(
        (before if before in weights and not _NUMERIC.search(before) and number.isdecimal() else "", number)
        for before, number in pairwise(["", *terms(text, language)])
        if _NUMERIC.search(number) and not _INEXACT.fullmatch(number)
    )
    return ParsedQuestion(text, weights, language, answer, numbers, names_in(text, language) & weights.keys())


def names_in(text: str, language: str) -> frozenset[str]:
    """Return the stems of words with a capital letter within a sentence; none in German."""
    if language == "de":
        return frozenset()
    found = [word for match in _NAME.finditer(text) for word in words(match[0])]
    return frozenset(terms(found, language)) if found else frozenset()
