"""More changes that make a true quotation false, and variations that leave it true.

Each takes a run of sentences of a text, and returns a quotation without quotation marks; None if it doesn't apply.
"""

# ruff: noqa: E501, RUF001 - one case in a line; look-alikes of quotation marks and dashes are the subject

import random
import re
import unicodedata
from collections.abc import Callable, Iterator

from tests.support.quotation_cases import MARKS, NEGATIONS, Generated, key, run_of_sentences, words_in

Change = Callable[[str, random.Random, str], str | None]

FALSE: list[tuple[str, str]] = [
    ("Stagiaires get paid leave? Ask the office.", '"Stagiaires get paid leave"'),
    ("Stagiaires get paid leave? Ask the office.", '"Stagiaires get paid leave."'),
    ("The room has 5 degrees at night.", '"- 5 degrees at night"'),
    ("The room has 5 degrees at night.", '"– 5 degrees at night"'),
    ("The fee is 5 percent of all.", '".5 percent of all"'),
    ("The fee is .5 percent of all.", '"5 percent of all"'),
    ("السعر ٣٫٥ دينار في اليوم", '"السعر ٣"'),
    ("السعر ٣٫٥ دينار في اليوم", '"٥ دينار في اليوم"'),
    ("The rate is 3·5 percent a year.", '"The rate is 3"'),
    ("The budget is five million euros.", '"The budget is five"'),
    ("The budget is 5 million euros for all.", '"million euros for all"'),
    ("It took two hundred people in all years.", '"hundred people in all years"'),
    ("五分之三的员工每年享有带薪年假。", "「三的员工每年享有带薪年假」"),
    ("# Parental leave\nEmployees get twenty weeks.", '"Parental leave Employees get twenty weeks"'),
    ("# Parental leave\n\nEmployees get twenty weeks.", '"Parental leave Employees get twenty weeks"'),
    ("Guests get nothing for\n\nFree beer is here for staff.", '"Guests get nothing for Free beer is here"'),
    ("- Dogs are allowed\n- Cats must stay outside", '"Dogs are allowed Cats must stay outside"'),
    ("<h2>Free for all</h2><p>Guests pay five euros</p>", '"Free for all Guests pay five euros"'),
    ("If you cancel too late, the fee is kept. If you cancel in time, the fee is refunded in full.", '"If you cancel too late, ... the fee is refunded in full."'),
    ("If you cancel too late, you pay the fee, but if you cancel in time, you get all of it back.", '"If you cancel too late, ... you get all of it back."'),
    ("It is not, in any case, refundable after the first week.", '"refundable after the first week"'),
    ("Employees do not get bonuses, company cars or paid flights home.", '"company cars or paid flights home"'),
    ("Sie erhalten keine Boni, Dienstwagen oder bezahlte Heimflüge.", '"Dienstwagen oder bezahlte Heimflüge"'),
    ("Guests pay for lunch. Employees eat for free. They get coffee too, every day.", '"[Guests] get coffee too, every day"'),
    ("Guests eat here. Tickets are not refundable.", '"refundable"'),
    ("Tickets are not refundable at all.", '"fully refundable"'),
    ("Dogs may stay in the room.", '"no"'),
    ("Dogs may stay in the room.", "“No.”"),
    ("Leave is ten weeks at full pay.", "&#8220;Leave is twelve weeks at full pay&#8221;"),
    ("Leave is ten weeks at full pay.", "&#x201c;Leave is twelve weeks at full pay&#x201D;"),
    ("Leave is ten weeks at full pay.", "&#171;Leave is twelve weeks at full pay&#187;"),
    ("Leave is ten weeks at full pay.", ",,Leave is twelve weeks at full pay''"),
    ("Leave is ten weeks at full pay.", "''Leave is twelve weeks at full pay''"),
    ("Leave is ten weeks at full pay.", "<<Leave is twelve weeks at full pay>>"),
    ("Leave is ten weeks at full pay.", '``Leave is twelve weeks at full pay"'),
    ("Leave is ten weeks at full pay.", '"Leave is twelve\nweeks at full pay"'),
    ("Leave is ten weeks at full pay.", '"Leave is twelve weeks.\nAnd this is at full pay for all"'),
    ("Leave is ten weeks at full pay.", '"Leave is twelve weeks at full pay'),
    ("Leave is ten weeks at full pay.", '"'+"Leave is twelve weeks at full pay, "*40+'"'),
    ("لَا يُسْمَحُ بِالتَّدْخِينِ فِي الْمَبْنَى.", '"يُسْمَحُ بِالتَّدْخِينِ فِي الْمَبْنَى"'),
    ("Il n'a droit aux congés que plus tard.", '"droit aux congés que plus tard"'),
    ("พนักงานทำงานดีมากทุกวัน น้ำ", '"พนักงานทำงานดีมากทุกวัน นํ้"'),
    ("การประชุมประจำปีจะมีขึ้นทุกวันจันทร์ทำ", '"การประชุมประจ"'),
    ("การประชุมประจําปีจะมีขึ้นทุกเวลา", '"การประชุมประจําปีจะมีขึ้นทุกเ"'),
    ("การประชุมประจําปีจะมีขึ้นทุกเวลา", '"วลา"'),
    ("The price is 5 km for all of them.", '"The price is 5 k"'),
    ("WHO staff may park in the yard.", '"who staff may park in the yard"'),
    ("Staff get leave, free lunch and tea - except on Mondays - in the yard.", '"free lunch and tea in the yard"'),
    ("Beer is ~~not~~ free for all guests.", '"Beer is free for all guests"'),
    ("re-sign the contract in May each year", '"resign the contract in May each year"'),
    ("The staff re-\nSign the contract in May", '"reSign the contract in May"'),
    ("It costs 1 500 euros for all of it", '"500 euros for all of it"'),
    ("It costs 1\u202f500 euros for all of it", '"It costs 1500 euros for all of it"'),
    ("It costs CHF 500 for all of it", '"It costs EUR 500 for all of it"'),
    ("It was 10:30 in the morning there", '"30 in the morning there"'),
    ("x = a[1] + 5 is all there is to know", '"x = a[2] + 5 is all there is to know"'),
    ("The rise is 2 × 10⁶ units in all", '"The rise is 2 × 10"'),
    ("The rise is 2 × 10^6 units in all", '"The rise is 2 × 10"'),
    ("Members rarely get paid leave in summer.", '"get paid leave in summer"'),
    ("It is forbidden to smoke in the yard of it.", '"to smoke in the yard of it"'),
    ("It is prohibited to smoke in the yard of it.", '"smoke in the yard of it"'),
    ("Staff may park here if and only if they are not late.", '"Staff may park here"'),
]  # fmt: skip
TRUE: list[tuple[str, str]] = [
    ("Can I bring a dog? Dogs may stay in the room.", '"Can I bring a dog?"'),
    ("The fee is .5 percent of all.", '".5 percent of all"'),
    ("السعر ٣٫٥ دينار في اليوم", '"السعر ٣٫٥ دينار"'),
    ("- 5 degrees are enough for all\n- 6 are better", '"5 degrees are enough for all"'),
    ("It took two hundred people in all years.", '"two hundred people in all years"'),
    ("Millions of people pay for millions of rooms.", '"pay for millions of rooms"'),
    ("# Leave\nEmployees get leave.\n\nGuests get none of it.", '"Employees get leave. Guests get none of it."'),
    ("The staff of the\n\noffice in London is small.", '"The staff of the office in London is small"'),
    ("> Dogs may stay\n> in the room all day.", '"Dogs may stay in the room all day"'),
    ("Guests eat for free. They get coffee too, every day.", '"[Guests] get coffee too, every day"'),
    ("No, employees get ten days of paid leave.", '"employees get ten days of paid leave"'),
    ("Interns get no leave, but employees have ten days.", '"employees have ten days"'),
    ("Leave is ten weeks at full pay.", ",,Leave is ten weeks at full pay''"),
    ("Leave is ten weeks at full pay.", "''Leave is ten weeks at full pay''"),
    ("Leave is ten weeks at full pay.", "<<Leave is ten weeks at full pay>>"),
    ("Leave is ten weeks at full pay.", "&#8220;Leave is ten weeks at full pay&#8221;"),
    ("Leave is ten weeks at full pay. It is long.", '"Leave is ten\nweeks at full pay"'),
    ("Leave is ten weeks at full pay. It is long.", '"Leave is ten weeks at full pay'),
    ("พนักงานประจำได้รับน้ำดื่มฟรีทุกวัน", '"ได้รับน้ำดื่มฟรี"'),
]

_SWAPS = (
    ("€", "$"), ("$", "€"), ("£", "$"), ("%", "‰"), ("EUR", "CHF"), ("CHF", "EUR"), ("euros", "dollars"),
    ("dollars", "euros"), ("percent", "points"), ("km", "miles"), ("°C", "°F"), ("weeks", "months"),
    ("days", "weeks"), ("months", "years"), ("hours", "minutes"), ("Tage", "Wochen"), ("Jahre", "Monate"),
    ("Euro", "Dollar"), ("Prozent", "Punkte"), ("километров", "миль"), ("процентов", "пунктов"), ("лет", "дней"),
    ("года", "месяца"), ("долларов", "рублей"), ("प्रतिशत", "रुपये"), ("साल", "महीने"), ("डॉलर", "रुपये"), ("年", "月"),
    ("美元", "欧元"), ("英里", "公里"), ("米", "里"), ("أيام", "أشهر"), ("عام", "شهر"), ("دولار", "يورو"), ("كيلومتر", "ميل"),
)  # fmt: skip
_MARKS = {
    "a decimal comma less": (r"(?<=\d)[.,](?=\d)", ""),
    "a decimal point for a comma": (r"(?<=\d),(?=\d)", "."),
    "a decimal comma for a point": (r"(?<=\d)\.(?=\d)", ","),
    "a minus": (r"(?<=[\s(])(?=\d)", "-"),
    "a spaced minus": (r"(?<=[\s(])(?=\d)", "- "),
    "a decimal point before a number": (r"(?<=[\s(])(?=\d)", "."),
    "a question for a statement": (r"[.。।]\Z", "?"),
    "a comma less": (r"(?<=\w)[,，、،](?=\s?\w)", ""),
    "a superscript as a digit": ("²", "2"),
    "a hyphen as a space": (r"(?<=[^\W\d_])-(?=[^\W\d_])", " "),
    "a hyphen less": (r"(?<=[^\W\d_])-(?=[^\W\d_])", ""),
    "a parenthesis less": (r"[(（](?=.*[)）] ?\w)", ""),
}
_ELLIPSES = (" ... ", " … ", " [...] ", " […] ", " (...) ", "... ")


def attacks(texts: list[str], language: str, seed: int, count: int) -> Iterator[Generated]:
    """Yield true quotations of texts in each variation, and false ones of each kind."""
    chance = random.Random(seed)
    texts = [text for text in texts if not re.search(r"\[\d", text)]  # a number in brackets is a citation marker
    for _ in range(count):
        text = chance.choice(texts)
        run = run_of_sentences(text, chance)
        if run is None or re.search(r"[\d-]\.\Z|\n", run):
            continue
        marks = [one for one in MARKS if one[0] != "《" and not set(one.replace("{}", "")) & set(run)] or ["<q>{}</q>"]
        for name, variation in VARIATIONS.items():
            varied = variation(run, chance, language)
            if varied is not None:
                yield Generated(text, chance.choice(marks).format(varied), "none", name)
        for name, source, quotation in _of_other_sources(text, run, chance):
            yield Generated(source, chance.choice(marks).format(quotation), "none" if name in SOURCES else name, name)
        for name, change in CHANGES.items():
            changed = change(run, chance, language)
            if changed is not None and key(changed) not in key(text):
                yield Generated(text, chance.choice(marks).format(changed), name)
        for name, cut in CUTS.items():
            if (changed := cut(run, chance, language)) is not None:
                yield Generated(text, chance.choice(marks).format(changed), name)


SOURCES = ("a divided word", "an honest omission")


def _of_other_sources(text: str, run: str, chance: random.Random) -> Iterator[tuple[str, str, str]]:
    """Yield quotations of the text in another form, with the name of the form."""
    yield "a heading and its text", f"# Quillmere rules\n{text}", f"Quillmere rules {text[:60].rsplit(' ', 1)[0]}"
    if (words := list(re.finditer(r"(?<![\w-])[a-zäöüа-я]{8,}(?![\w-])", run))) and text.count(run) == 1:
        middle = chance.choice(words).start() + 4
        divided = f"{run[:middle]}-\n{run[middle:]}"
        yield "a divided word", text.replace(run, divided), run.replace("\n", " ")
    first, last = "The first sentence has seven words here.", "The last one has as many words too."
    if not re.search(r"\n\n|^[-#|*]", text):
        source = f"{first} {text.strip()} {last}"
        yield "an omission of text that negates", f"{first} It is not so. {last}", f"{first} ... {last}"
        yield "an honest omission", f"{first} It is so, they say. {last}", f"{first}{chance.choice(_ELLIPSES)}{last}"
        yield "an omission before half a sentence", source, f"{first} ... has as many words too."


def _replaced(pattern: str, by: str) -> Change:
    def change(run: str, chance: random.Random, _: str) -> str | None:
        found = list(re.finditer(pattern, run))
        if not found:
            return None
        place = chance.choice(found)
        return run[: place.start()] + by + run[place.end() :]

    return change


def _another_unit(run: str, chance: random.Random, _: str) -> str | None:
    fitting = [(one, other) for one, other in _SWAPS if one in run]
    if not fitting:
        return None
    one, other = chance.choice(fitting)
    place = chance.choice(list(re.finditer(re.escape(one), run)))
    return run[: place.start()] + other + run[place.end() :]


def _another_name(run: str, chance: random.Random, _: str) -> str | None:
    names = list(re.finditer(r"(?<=\w )[A-ZÄÖÜА-Я][\w-]{2,}", run))
    if not names:
        return None
    name = chance.choice(names)
    other = chance.choice([one for one in ("Quillmere", "Smith", "Oxford", "Müller") if one != name[0]])
    return run[: name.start()] + other + run[name.end() :]


def _clauses_swapped(run: str, _chance: random.Random, _: str) -> str | None:
    one, mark, other = re.match(r"([^,，、،]*)([,，、،]?)(.*)", run, re.DOTALL).groups()  # type: ignore[union-attr]
    return f"{other.strip(' .。।')}{mark} {one}" if other.strip(" .。।") else None


def _fragments(run: str, chance: random.Random, joint: str) -> str | None:
    words = words_in(run)
    if len(words) < 16:
        return None
    size = chance.randrange(4, 7)
    first = chance.randrange(len(words) - 2 * size - 2)
    second = chance.randrange(first + size + 1, len(words) - size)
    one, other = (run[words[place].start() : words[place + size - 1].end()] for place in (first, second))
    return one + joint + other


def _joined(run: str, chance: random.Random, _: str) -> str | None:
    return _fragments(run, chance, chance.choice((" ", ", ", "; ", " – ", ". ")))


def _joined_by_ellipsis(run: str, chance: random.Random, _: str) -> str | None:
    """Join parts of one clause; whole sentences may be joined honestly."""
    clauses = [part for part in re.split(r"[,;:.。，；：、،؛।–—()]", run) if len(words_in(part)) >= 16]
    return _fragments(chance.choice(clauses), chance, chance.choice(_ELLIPSES)) if clauses else None


def _inside_a_word(run: str, chance: random.Random, _: str) -> str | None:
    words = [
        word for word in re.finditer(r"[^\W\d_]{5,}", run) if not re.search("[\u0e00-\u0eff\u3040-\u9fff]", word[0])
    ]
    if len(words) < 3:
        return None
    if chance.random() < 0.5:
        return run[: words[-1].start() + chance.randrange(2, len(words[-1][0]) - 1)]
    return run[words[0].start() + chance.randrange(1, len(words[0][0]) - 1) :]


def _inside_a_cluster(run: str, chance: random.Random, language: str) -> str | None:
    marks = [place for place in range(20, len(run)) if unicodedata.category(run[place])[0] == "M"]
    return run[: chance.choice(marks)] if language == "hi" and marks else None


def _after_a_negation(run: str, chance: random.Random, language: str) -> str | None:
    if language in ("zh", "hi"):
        return None
    pattern = "|".join(NEGATIONS[language])
    found = list(re.finditer(rf"(?<!\S)(?:{pattern}) ([^,.;:()–—]{{25,}})", run))
    return chance.choice(found)[1].strip() if found else None


def _acronym(run: str, chance: random.Random, _: str) -> str | None:
    found = list(re.finditer(r"\b[A-Z]{2,5}\b", run))
    if not found:
        return None
    name = chance.choice(found)
    return run[: name.start()] + name[0].lower() + run[name.end() :]


def _short(run: str, chance: random.Random, language: str) -> str | None:
    return chance.choice(
        {
            "en": ("strictly forbidden", "xenial", "fully waived"),
            "de": ("streng verboten", "unverzollt", "gänzlich erlassen"),
            "ru": ("строго запрещено", "бесплатно всем"),
            "hi": ("सख्त मनाही", "मुफ़्त भोजन"),
            "zh": ("严禁携带", "免费啤酒"),
            "ar": ("ممنوع تماما", "مجانا للجميع"),
        }[language]
    )


CHANGES: dict[str, Change] = {
    **{name: _replaced(*change) for name, change in _MARKS.items()},
    "another unit": _another_unit,
    "another name": _another_name,
    "clauses in another order": _clauses_swapped,
    "joined fragments": _joined,
    "fragments with an omission": _joined_by_ellipsis,
    "an acronym in lower case": _acronym,
    "short, in no source": _short,
}
CUTS: dict[str, Change] = {
    "cut inside a word": _inside_a_word,
    "cut inside a grapheme": _inside_a_cluster,
    "begun after a negation": _after_a_negation,
}


def _spaced(run: str, chance: random.Random, _: str) -> str:
    return re.sub(r"(?<=\S)[ \n](?=\S)", lambda _: chance.choice((" ", "  ", "\u00a0", "\u202f", "\t")), run)


def _typographic(run: str, chance: random.Random, _: str) -> str:
    run = re.sub(r"(?<=\w)'(?=\w)", "’", run)
    return re.sub(r"(?<= )[-–](?= )", lambda _: chance.choice("–—-"), run)


VARIATIONS: dict[str, Change] = {
    "white space": _spaced,
    "typographic": _typographic,
    "NFD": lambda run, _chance, _language: unicodedata.normalize("NFD", run.replace("\n", " ")),
    "NFC": lambda run, _chance, _language: unicodedata.normalize("NFC", run.replace("\n", " ")),
    "soft hyphens": lambda run, _chance, _language: re.sub(
        r"(?<=[a-zäöüа-я]{3})(?=[a-zäöüа-я]{3})", "\u00ad", run.replace("\n", " "), count=3
    ),
    "full-width digits": lambda run, _chance, _language: re.sub(
        r"(?<!\w)\d+(?!\w)", lambda found: "".join(chr(0xFF10 + int(one)) for one in found[0]), run.replace("\n", " ")
    ),
    "no full stop": lambda run, _chance, _language: run.replace("\n", " ").rstrip(".。।"),
    "a comma at the end": lambda run, _chance, _language: run.replace("\n", " ").rstrip(".。।") + ",",
    "a full stop inside": lambda run, _chance, _language: run.replace("\n", " ").rstrip(".。।") + ".",
    "ellipses around": lambda run, chance, _language: (
        f"{chance.choice(('... ', '… ', '[...] '))}{run}".replace("\n", " ") + " ..."
    ),
}
