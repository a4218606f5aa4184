"""Sentences of a provider without a model, in the language of the question."""

# ruff: noqa: RUF001 - letters and punctuation of other scripts

from collections.abc import Mapping
from typing import Final

from ragstack_common.text.languages import ENGLISH

NO_ANSWERS: Final[Mapping[str, str]] = {
    ENGLISH: "No answer was found in the passages that were read.",
    "de": "In den gelesenen Textstellen wurde keine Antwort gefunden.",
    "fr": "Aucune réponse n'a été trouvée dans les passages lus.",
    "es": "No se encontró ninguna respuesta en los pasajes leídos.",
    "pt": "Nenhuma resposta foi encontrada nos trechos lidos.",
    "it": "Nessuna risposta è stata trovata nei passaggi letti.",
    "nl": "In de gelezen passages is geen antwoord gevonden.",
    "ru": "В прочитанных фрагментах ответ не найден.",
    "ar": "لم يُعثر على إجابة في المقاطع التي تمت قراءتها.",
    "hi": "पढ़े गए अंशों में कोई उत्तर नहीं मिला।",
    "zh": "在已读的段落中没有找到答案。",
    "ja": "読んだ文章の中に答えは見つかりませんでした。",
}
NO_ANSWER: Final = NO_ANSWERS[ENGLISH]
"""The whole answer of a provider that finds none in the passages."""

CLOSEST: Final[Mapping[str, str]] = {
    ENGLISH: "These passages are closest to the question, and may not answer it:",
    "de": "Diese Textstellen sind der Frage am nächsten und beantworten sie vielleicht nicht:",
    "fr": "Ces passages sont les plus proches de la question et n'y répondent peut-être pas :",
    "es": "Estos pasajes son los más cercanos a la pregunta y quizá no la respondan:",
    "pt": "Estes trechos são os mais próximos da pergunta e talvez não a respondam:",
    "it": "Questi passaggi sono i più vicini alla domanda e forse non rispondono:",
    "nl": "Deze passages liggen het dichtst bij de vraag en beantwoorden haar misschien niet:",
    "ru": "Эти фрагменты ближе всего к вопросу, но, возможно, не отвечают на него:",
    "ar": "هذه المقاطع هي الأقرب إلى السؤال وقد لا تجيب عنه:",
    "hi": "ये अंश प्रश्न के सबसे निकट हैं और शायद उसका उत्तर न दें:",
    "zh": "以下段落与问题最接近，但可能没有回答问题：",
    "ja": "次の文章が質問に最も近いですが、答えになっていないかもしれません：",
}
_CONFLICTS: Final[Mapping[str, str]] = {
    ENGLISH: "The documents give different figures: {}.",
    "de": "Die Dokumente nennen verschiedene Zahlen: {}.",
    "fr": "Les documents donnent des chiffres différents : {}.",
    "es": "Los documentos dan cifras diferentes: {}.",
    "pt": "Os documentos dão números diferentes: {}.",
    "it": "I documenti danno cifre diverse: {}.",
    "nl": "De documenten geven verschillende getallen: {}.",
    "ru": "В документах указаны разные числа: {}.",
    "ar": "تذكر المستندات أرقامًا مختلفة: {}.",
    "hi": "दस्तावेज़ अलग-अलग आँकड़े देते हैं: {}.",
    "zh": "各文件给出的数字不同：{}。",
    "ja": "文書によって数字が異なります：{}。",
}

CLOSEST_PASSAGES: Final = CLOSEST[ENGLISH]
"""The first line of a provider that quotes passages without knowing whether they answer."""


def no_answer(language: str) -> str:
    """Return the sentence that there is no answer; in English for other languages."""
    return NO_ANSWERS.get(language, NO_ANSWER)


def closest_passages(language: str) -> str:
    """Return the line above the closest passages; in English for other languages."""
    return CLOSEST.get(language, CLOSEST_PASSAGES)


def conflicting(language: str, figures: str) -> str:
    """Return the sentence that documents give different figures; in English for other languages."""
    return _CONFLICTS.get(language, _CONFLICTS[ENGLISH]).format(figures)


def is_no_answer(text: str) -> bool:
    """Whether a text says, in any of the languages, that there is no answer."""
    return text.strip() in NO_ANSWERS.values()


def has_closest_passages(text: str) -> bool:
    """Whether a text begins, in any of the languages, with the line above the closest passages."""
    return text.startswith(tuple(CLOSEST.values()))
