"""Where sentences end, in texts of any script."""

# ruff: noqa: RUF001 - full-width marks, Cyrillic letters and words of Thai are the subject

import re
from collections.abc import Iterator
from functools import cache
from typing import Final

SPACED_ENDS: Final = ".!?…‼⁇⁈⁉։؝؞؟۔܀܁܂߹।॥၊။።፧፨᙮᜵᜶។៕᠃᠉᥄᥅᪨᪩᪪᪫᭚᭛᭞᭟᰻᰼᱾᱿꓿꘎꘏꛳꛷꡶꡷꣎꣏꤯꧈꧉꩝꩞꩟꫰꫱꯫"
"""Marks that end a sentence if white space follows. Source: Unicode, Sentence_Break, and the ellipsis."""

QUESTION_MARKS: Final = ("?", "؟", "？", "\u037e", "՞", "⸮")

DENSE_ENDS: Final = "。！？｡．︒﹒﹖﹗"
"""Marks that end a sentence without white space."""

CLOSING_MARKS: Final = "\"'”“’‘»«›‹」』》〉﹂﹄｣〞〟＂＇❞❜"
"""Quotation marks that may follow the end of a sentence."""

REFERENCES: Final = r"(?:[\[(]\d{1,3}[\])])*+"
"""Marks of footnotes, such as [12], which may follow the end of a sentence; prompts write them as (12)."""

MAX_ABBREVIATION: Final = 16
"""Characters before a full stop that may decide what it means."""

MIN_UNMARKED: Final = 80
"""Characters after which a space may end a sentence in Thai or Lao, which have no mark for it."""

_ABBREVIATION: Final = re.compile(
    r"(?:\b(?:e\.g|i\.e|etc|cf|vs|approx|resp|incl|excl|est|max|min|avg|pp|vol|ch|ed|eds|dept|Dr|Mr|Mrs|Ms|Prof|Rev|Hon"
    r"|Gen|Col|Sgt|Capt|Lt|St|Mt|Ft|No|Nos|Nr|Fig|Figs|Sec|Art|Abs|Ziff|Eq|Inc|Ltd|Co|Corp|Jr|Sr|Bros|Ave|Blvd|Rd"
    r"|bzw|ca|inkl|exkl|zzgl|ggf|evtl|sog|usw|vgl|Mio|Mrd|Tel|Str|Hr|Fr|geb|gest|Jh|Jhd"
    r"|Mme|Mlle|env|av|apr|p\.ex|Sra|Srta|Dra|Ud|Uds|núm|pág|págs|aprox|Sig|Sigg|pag|ecc|bijv|enz|blz|nl|dhr|mevr"
    r"|т\.е|т\.д|т\.п|т\.к|др|пр|гг|вв|им|ул|стр|рис|тыс|млн|млрд|руб|коп|см|напр|проф|акад|डॉ|श्री|श्रीमती|प्रो"
    r"|[^\W\d_])|\b(?:am|[Dd]er|[Dd]ie|[Dd]as|[Dd]en|[Dd]em|[Dd]es|im|vom|zum|bis|ab|seit|und) \d{1,2})\.$"
)
"""A word, or a German ordinal, whose full stop does not end a sentence."""

_MONTH: Final = re.compile(
    r"(?:Januar|Jänner|Februar|März|April|Mai|Juni|Juli|August|September|Oktober|November|Dezember|Jahrhundert)"
)
MAX_MONTH: Final = 11

_END: Final = re.compile(
    rf"(?:(?<![{SPACED_ENDS}])[{SPACED_ENDS}]++|(?<=[\u0370-\u03ff\u1f00-\u1fff])[;\u037e])[{CLOSING_MARKS})\]*_]*+{REFERENCES}(?=\s+(?:[^\w\s]|_)*+([^\W_]))|[{DENSE_ENDS}]++[{CLOSING_MARKS})]*+"
)
_BINDING: Final = (
    "กับ|ของ|ขณะ|คือ|จน|จาก|จึง|ซึ่ง|ณ|ด้วย|ดัง|ตลอด|ตั้งแต่|ตาม|ต่อ|ถึง|ทั้ง|ที่|บน|ประมาณ|ผู้|พร้อม|มี|รวม|ระหว่าง|ว่า|สำหรับ|หรือ|หลัง"
    "|อัน|อย่าง|เช่น|เป็น|เพราะ|เพื่อ|เมื่อ|เนื่อง|แก่|แต่|และ|แห่ง|แล้ว|โดย|ใต้|ใน|ให้|ได้|ก่อน|ก็|ไว้|ไม่ว่า"
    "|ກັບ|ຂອງ|ຄື|ຈາກ|ຈຶ່ງ|ຊຶ່ງ|ດ້ວຍ|ທັງ|ທີ່|ພ້ອມ|ລວມ|ລະຫວ່າງ|ວ່າ|ສໍາລັບ|ສຳລັບ|ຫຼື|ແຕ່|ແລະ|ໂດຍ|ໃນ|ໃຫ້|ເຊັ່ນ|ເປັນ|ເພາະ|ເພື່ອ|ເມື່ອ"
)
"""Words of Thai and Lao that continue a sentence: conjunctions, prepositions and relative pronouns."""

_LETTER_BEFORE: Final = "(?<=[\u0e01-\u0e45\u0e47-\u0e4e\u0e81-\u0ebd\u0ec0-\u0ecf])(?<!ฯ)"
_MAX_BINDING: Final = 8
_IS_UNMARKED: Final = re.compile("[\u0e00-\u0eff]")


def is_abbreviation(text: str, stop: int, following: int) -> bool:
    """Whether a full stop belongs to an abbreviation, an initial, or a day before its month.

    Args:
        text: The text.
        stop: Offset of the full stop.
        following: Offset of the next letter or digit.
    """
    if text[stop - 1 : stop].isdigit() and _MONTH.match(text, following):
        return True
    return _ABBREVIATION.search(text, max(0, stop + 1 - MAX_ABBREVIATION), stop + 1) is not None


def begins_small(character: str) -> bool:
    """Whether a letter is small and hardly begins a sentence; sentences of Georgian begin with small letters."""
    return character.islower() and not "\u10d0" <= character <= "\u10ff"


def sentence_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each sentence of a paragraph, without the white space between them.

    A mark ends a sentence only if no small letter follows. Thai and Lao have no marks: there, a space ends a part that
    is long enough, but not next to a number, a foreign word, or a word that continues the sentence.
    """
    start = 0
    for found in _ends(text):
        if text[start:found].strip():
            yield start + len(text[start:found]) - len(text[start:found].lstrip()), found
        start = found
    if rest := text[start:].strip():
        begin = text.index(rest, start)
        yield begin, begin + len(rest)


def _ends(text: str) -> Iterator[int]:
    ends = [
        match.end()
        for match in _END.finditer(text)
        if match[1] is None
        or not (begins_small(match[1]) or (match[0][0] == "." and is_abbreviation(text, match.start(), match.start(1))))
    ]
    if _IS_UNMARKED.search(text):
        marked, ends, start = [*ends, len(text.rstrip())], [], 0
        for end in marked:
            for space in _unmarked().finditer(text, start, end):
                is_bound = _bound().search(text, space.start() - _MAX_BINDING, space.start())
                if space.start() - start >= MIN_UNMARKED and not is_bound:
                    ends.append(space.start())
                    start = space.end()
            ends.append(end)
            start = end
    yield from ends


@cache
def _unmarked() -> re.Pattern[str]:
    return re.compile(rf"{_LETTER_BEFORE}[ \t]+(?!{_BINDING})(?=[\u0e01-\u0e4e\u0e81-\u0ecf“‘\"])")


@cache
def _bound() -> re.Pattern[str]:
    return re.compile(rf"(?:{_BINDING})\Z")
