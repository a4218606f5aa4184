"""Words that negate, in common languages. A quotation must not leave them out of its first or last clause."""

# ruff: noqa: E501, RUF001, SIM905 - words of many languages, and letters of other scripts

import re
from typing import Final

_WORDS: Final = frozenset(
    (
        "no not non never none nobody nothing nowhere neither nor without cannot cant dont wont isnt hardly scarcely"
        " barely unless except rarely seldom forbidden prohibited"
        # German, Dutch, the Scandinavian languages
        " nicht kein keine keinen keinem keiner keines nie niemals niemand nichts nirgends weder ohne außer kaum selten verboten untersagt"
        " niet geen nooit niemand niets zonder ikke ikkje inte ej aldrig ingen inget inga intet ingenting utan uden uten"
        # French, Spanish, Portuguese, Italian, Romanian
        " ne n' pas jamais aucun aucune aucuns rien personne sans ni sauf nunca jamás nada nadie ningún ninguno"
        " ninguna sin tampoco excepto interdit interdite prohibido prohibida rarement não nem ninguém nenhum nenhuma sem nessuno nessuna niente nulla né senza"
        " niciodată nimeni nimic fără"
        # Slavic languages
        " не нет ни без нельзя никогда никто ничего ничто нигде запрещено запрещается редко ниоткуда никак немає нема ніколи ніхто нічого жоден ані"
        " nie nigdy nikt nic żaden żadna żadne bez ani není nejsou nikdy nikdo žádný žádná žádné nije nisu nema nikad"
        # Turkish, Finnish, Hungarian, Greek, Indonesian, Vietnamese
        " değil yok hayır hiç hiçbir ei eivät emme ette älä eikä ilman nem sem sincs nincs soha semmi senki δεν δε μην"
        " όχι ποτέ κανείς κανένα χωρίς ούτε tidak bukan tanpa belum jangan không chưa chẳng"
        # Arabic, Hebrew, Persian
        " لا لم لن ليس ليست ليسوا غير بدون دون ولا ولم ولن وليس فلا فلم فلن وغير سوى إلا لست لسنا لستم ممنوع לא אין בלי אל ללא אינו אינה אינם"
        " نیست نه بدون هیچ"
        # Hindi, Bengali, Urdu, Tamil
        " नहीं नही न ना मत मना बिना बगैर না নয় নেই ছাড়া نہیں نہ مت இல்லை"
        # Korean
        " 안 못 아니 없이 아닌"
    ).split()
)
_VOWEL_SIGNS: Final = re.compile("[\u0640\u064b-\u0652\u0670\u05b0-\u05c7]")
"""Vowel signs of Arabic and Hebrew, usually omitted."""

_KOREAN: Final = re.compile("지(?:는|도|를)?$|않|없|못하|아니|아닙|말[고라]")
_DENSE: Final = re.compile(
    "不|沒|没|未(?![来來])|[无無]|非(?!常)|勿|莫|毋|禁|ない|なか[っろ]|なく|なけ|ません|ぬ|ずに|ざる|ไม่|มิได้|ห้าม|ปราศจาก|เว้น"
)


def is_negation(word: str) -> bool:
    """Whether a word of a script with spaces negates."""
    lower = _VOWEL_SIGNS.sub("", word.casefold())
    return (
        lower in _WORDS
        or lower.endswith("n't")
        or lower.startswith("n'")
        or (word[-1] >= "가" and bool(_KOREAN.search(word)))
    )


def dense_negations(text: str) -> list[tuple[int, int]]:
    """Return where a text in scripts without spaces negates."""
    return [found.span() for found in _DENSE.finditer(text)]
