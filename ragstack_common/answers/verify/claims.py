"""Whether a heading or the introduction of a list makes a claim, which needs a source."""

# ruff: noqa: RUF001, SIM905 - words and punctuation of many languages

import re
from typing import Final

from ragstack_common.answers.verify.negations import is_negation

_WORD: Final = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
_VERBS: Final = frozenset(
    (
        "is are was were has have had must may can will shall gets get costs needs applies expires ends"
        " ist sind war waren hat haben muss müssen darf dürfen kann können wird werden gilt kostet"
        " est sont était ont doit doivent peut peuvent sera coûte son era tiene tienen debe deben puede pueden"
        " является являются может могут должен должны имеет है हैं था थे सकते सकता होगा يجب يمكن كان"
    ).split()
)
_INTERROGATIVES: Final = frozenset(
    (
        "what when where which who whose why how was wann wo welche wer warum wie que quand où qui pourquoi comment"
        " quoi qué cuándo dónde quién cómo что когда где кто почему как क्या कब कहाँ कौन कैसे"
    ).split()
)


def makes_claim(text: str, *, is_heading: bool) -> bool:
    """Whether a line that is not a question has a negation, or is a heading, not of a table, with a verb."""
    words = _WORD.findall(text)
    if not words or text.rstrip("*_ ").endswith(("?", "？", "؟")) or words[0].casefold() in _INTERROGATIVES:
        return False
    may_have_verb = is_heading and not text.startswith("|")
    return any(is_negation(word) or (may_have_verb and word.casefold() in _VERBS) for word in words)
