"""Quotations that must be verified, and false ones that must not, written by hand and generated."""

# ruff: noqa: E501, Q003, RUF001 - one case in a line; look-alikes of quotation marks and dashes are the subject

import random
import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass

PLANS = "Plans: Basic 2   100 requests a minute, Pro 1 500 requests a minute and 50% of the cost."
TIMES = "Parental leave is 20¹ weeks. The notice is 1½ months, the fee 2*5 euros, the limit 11⁄2 units."
COLD = (
    "The server room has -5 degrees at night. An agent isn't able to open the door from outside. We are now here again."
)
LEAVE = "Employees at the main office get coffee and water for free. Guests get nothing. Beer is not free of charge."

FALSE: list[tuple[str, str]] = [
    # numbers, signs and units
    (PLANS, '"Basic 2100 requests a minute"'),
    (PLANS, '"2100 requests a minute"'),
    (PLANS, '"500 requests a minute"'),
    (PLANS, '"500 requests"'),
    (PLANS, '"Pro 1500 requests a minute"'),
    (PLANS, '"requests a minute and 50"'),
    (PLANS, '"Pro 1"'),
    (TIMES, '"Parental leave is 201 weeks"'),
    (TIMES, '"Parental leave is 20 weeks"'),
    (TIMES, '"leave is 20"'),
    (TIMES, '"201 weeks"'),
    (TIMES, '"The notice is 11⁄2 months"'),
    (TIMES, '"The notice is 11/2 months"'),
    (TIMES, '"The notice is 112 months"'),
    (TIMES, '"The notice is 1 months"'),
    (TIMES, '"The notice is 1"'),
    (TIMES, '"the limit 1½ units"'),
    (TIMES, '"the fee 25 euros"'),
    (TIMES, '"5 euros, the limit"'),
    (COLD, '"The server room has 5 degrees at night"'),
    (COLD, '"5 degrees at night"'),
    (COLD, '"5 degrees"'),
    ("A fine of 1 0 days of pay is due.", '"A fine of 10 days of pay is due"'),
    ("It costs 1,500 euros and 3.5 percent a year.", '"It costs 1.500 euros"'),
    ("It costs 1,500 euros and 3.5 percent a year.", '"It costs 1500 euros"'),
    ("It costs 1,500 euros and 3.5 percent a year.", '"500 euros and 3.5 percent a year"'),
    ("It costs 1,500 euros and 3.5 percent a year.", '"It costs 1,500 euros and 3"'),
    ("It costs 1,500 euros and 3.5 percent a year.", '"It costs 1,500 euros and 3.5"'),
    ("The budget is 5 million euros.", '"The budget is 5 euros"'),
    ("The budget is 5 million euros.", '"The budget is 5"'),
    ("It costs $500 for each seat.", '"It costs 500 for each seat"'),
    ("It costs € 500 for each seat.", '"500 for each seat"'),
    ("The pipe has 5\" and the mast 6' of length.", '"The pipe has 5 and the mast 6"'),
    ("The pipe has 5″ and the mast 6′ of length.", '"The pipe has 5 and the mast 6 of length"'),
    ("The error is <5 units in all.", '"The error is 5 units in all"'),
    ("The error is <5 units in all.", '"5 units in all"'),
    ("The area is 20 m² in all rooms.", '"The area is 20 m in all rooms"'),
    ("The area is 20 m² in all rooms.", '"The area is 20 m2 in all rooms"'),
    ("The area is 10² units wide.", '"The area is 102 units wide"'),
    ("It is 20<sup>1</sup> weeks long.", '"It is 201 weeks long"'),
    ("The heat is minus 5 degrees.", '"5 degrees"'),
    ("Take 2*5 and 3*4 pieces of it.", '"Take 25 and 34 pieces of it"'),
    ("Take 2_5 and 3_4 pieces of it.", '"Take 25 and 34 pieces of it"'),
    (r"Take 2\5 pieces of each one.", '"Take 25 pieces of each one"'),
    ("Open from 10-12 and 14-16 daily.", '"Open from 10"'),
    ("Open from 10-12 and 14-16 daily.", '"Open from 1012 and 1416 daily"'),
    # words, and the spaces between them
    (COLD, '"We are nowhere again"'),
    (COLD, '"able to open the door from outside"'),
    (COLD, '"An agent is able to open the door from outside"'),
    ("Now*here and there they meet again.", '"Nowhere and there they meet again"'),
    ("Tickets are non-refundable after the first week.", '"refundable after the first week"'),
    ("Employees are unable to work from home.", '"able to work from home"'),
    ("It is due in the first week of May.", '"in the first week of Ma"'),
    ("You may carry over ten days – no more.", '"any over ten days no more"'),
    ("Book trains early, and second class.", '"book trains early, and second"'),
    ("The fee for all is 1,500 euros.", '"The fee for all is 1"'),
    ("The fee is 1.500 euros for each night.", '"500 euros for each night"'),
    ("They work for the union ized staff only.", '"They work for the unionized staff only"'),
    ("The email address is on the card.", '"The e mail address is on the card"'),
    ("Say what you like, you can’t carry days over.", '"Say what you like, you can"'),
    ("年次休暇は十日です。翌年に繰り越せます。", '"休暇は十日です。翌年に繰り越せます。年次"'),
    # negations that are left out
    ("Interns do not get paid leave in summer.", '"get paid leave in summer"'),
    ("Sie dürfen den Urlaub nicht in das nächste Jahr übertragen.", '"in das nächste Jahr übertragen"'),
    ("Sie dürfen den Urlaub nicht in das nächste Jahr übertragen.", '"Sie dürfen den Urlaub"'),
    ("Les stagiaires n'ont pas droit aux congés payés.", "«droit aux congés payés»"),
    ("Стажёры не получают оплачиваемый отпуск летом.", "«получают оплачиваемый отпуск летом»"),
    ("实习生不能享受带薪年假和病假。", "「能享受带薪年假和病假」"),
    ("実習生は有給休暇を翌年に繰り越せません。", "「実習生は有給休暇を翌年に繰り越せま」"),
    ("प्रशिक्षुओं को सवेतन छुट्टी नहीं मिलती है।", '"प्रशिक्षुओं को सवेतन छुट्टी"'),
    ("المتدربون لا يحصلون على إجازة مدفوعة.", '"يحصلون على إجازة مدفوعة"'),
    (LEAVE, '"Beer is ... free of charge"'),
    (LEAVE, '"Employees at the main office get coffee and water for free. ... Beer is not free of charge."'),
    # omissions that select words
    (LEAVE, '"Employees ... get ... Free beer"'),
    (LEAVE, '"Employees ... get ... beer"'),
    (LEAVE, '"Employees at the main office get ... free of charge"'),
    (LEAVE, '"Employees […] get […] for free"'),
    (LEAVE, '"Guests get ... coffee and water for free"'),
    ("Parental leave is sixteen weeks at full pay.", '"Parental leave ... at full pay"'),
    # brackets that change more than a pronoun
    ("It is paid in full by the company.", '"[Free beer] is paid in full by the company"'),
    ("Leave is long. Beer is paid in full by all.", '"[Leave] is paid in full by all"'),
    ("It is paid in full by the company.", '"It is [not] paid in full by the company"'),
    # quotation marks of all kinds
    *(
        ("Leave is ten weeks at full pay.", marks.format("Leave is twelve weeks at full pay"))
        for marks in (
            "„{}\"", "„{}“", "„{}”", "＂{}＂", "《{}》", "〈{}〉", "<q>{}</q>", '<q cite="a">{}</q>', '" {} "', "« {} »",
            "»{}«", "»{}»", "‹{}›", "›{}‹", "‚{}'", "‚{}‘", "‘{}’", "'{}'", "' {} '", "”{}”", "“{}\"", "\"{}”", "“{}“",
            "「{}」", "『{}』", "﹁{}﹂", "｢{}｣", "〝{}〟", "❝{}❞", "＇{}＇", "&quot;{}&quot;", "&ldquo;{}&rdquo;", "``{}''",
            '"" {} "', "“\" {} ”", "„Yes\" {}“", "‚The hosts' {}‘", '\\"{}\\"', '**"{}"**', '"A “nested” word: {}"',
        )
    ),
    ("Leave is ten weeks at full pay.", "'20 weeks of leave at full pay'"),
    # digits and letters of other scripts
    ("年次休暇は二十日です。翌年に繰り越せます。", "「十日です。翌年に繰り越せます。」"),
    ("年次休暇は２０日です。翌年に繰り越せます。", "「年次休暇は２日です。翌年に繰り越せます。」"),
    ("费用为3万元人民币，每年支付一次。", "「费用为3元人民币，每年支付一次」"),
    ("छुट्टी २० दिन की होती है।", '"छुट्टी २ दिन की होती है"'),
    ("العمولة ٥٪ من السعر الكلي.", '"العمولة ٥ من السعر الكلي"'),
]  # fmt: skip

MARKDOWN = (
    '**Parental leave** is *twenty* weeks, see [the policy](https://example.com/a_b_c "Policy") &amp; the rules. '
    "Use `make test` on 2\\*5 nodes.\n\n- Leave must be booked. It may be taken at any time.\n- **Part-time** staff: 27&nbsp;days"
)
WRAPPED = "The employ-\nment of full-time staff is for an inde\u00adfinite period,\nand it ends on the 31st of May."

TRUE: list[tuple[str, str]] = [
    *(
        ("Leave is ten weeks at full pay.", marks.format("Leave is ten weeks at full pay"))
        for marks in (
            '"{}"', "„{}\"", "„{}“", "＂{}＂", "《{}》", "<q>{}</q>", '" {} "', "« {} »", "»{}«", "‹{}›", "‚{}'", "‘{}’", "'{}'",
            "”{}”", "“{}\"", "「{}」", "『{}』", "〝{}〟", "&quot;{}&quot;", "``{}''", '"{}."', '**"{}"**', '"... {} ..."',
        )
    ),
    (MARKDOWN, '"Parental leave is twenty weeks, see the policy & the rules. Use make test on 2*5 nodes."'),
    (MARKDOWN, '"**Parental leave** is *twenty* weeks, see [the policy](https://example.com/a_b_c "Policy") &amp; the rules"'),
    (MARKDOWN, '"Part-time staff: 27 days"'),
    (MARKDOWN, '"[Leave] may be taken at any time"'),
    (MARKDOWN, '"[l]eave must be booked. It may be taken at any time"'),
    (WRAPPED, '"The employment of full-time staff is for an indefinite period, and it ends on the 31st of May"'),
    ("Most of the full-\ntime staff works from home.", '"Most of the full-time staff works from home"'),
    (WRAPPED, '"for an indefinite period, and it ends on the 31st of May"'),
    (unicodedata.normalize("NFD", "연차 휴가는 십오 일이며 다음 해로 넘어갑니다."), '"연차 휴가는 십오 일이며 다음 해로"'),
    ("연차 휴가는 십오 일이며 다음 해로 넘어갑니다.", unicodedata.normalize("NFD", '"연차 휴가는 십오 일이며 다음 해로"')),
    ("The fee\u2060 is ten\u200b euros \u202bfor\u202c all\ufeff guests.", '"The fee is ten euros for all guests"'),
    ("Cafe\u0301s and hotels are paid for.", '"Cafés and hotels are paid for"'),
    ("They are able-bodied, unable and able to work from home.", '"able to work from home"'),
    ("They work from 10 to 12, and go at 3.", '"They work from 10 to 12"'),
    ("The fee—ten euros for each night—is due.", '"ten euros for each night"'),
    ("Leave is **sixteen weeks** – no more – see § 4 [12].", '"no more – see § 4 (12)"'),
    ("年次休暇は十日です。翌年の三月末までに繰り越せます。", '"休暇は十日です。翌年の三月末までに繰り越"'),
    ("The oﬃce is open from Monday.", '"The office is open from Monday"'),
    ("年次休暇は十日です。\n翌年の三月末までに繰り越せます。", "「年次休暇は十日です。 翌年の三月末までに繰り越せます。」"),
    ("API的每分钟限制为100个请求，超过后返回429。", "“API 的每分钟限制为 100 个请求，超过后返回 429。”"),
    ("การลาพักร้อนประจำปีมีสิบวันต่อปี", '"การลาพักร้อนประจำปีมีสิบวันต่อปี"'),
    ("Il dit « oui, demain matin ». Puis il part.", '"Il dit \'oui, demain matin\'. Puis il part."'),
    ("L’eau potable est gratuite pour tous.", "«L'eau potable est gratuite pour tous»"),
    ("Leave is ten weeks at full pay. Guests get lunch and tea. It must be booked in May.",
     '"Leave is ten weeks at full pay. [...] It must be booked in May."'),
    ("| City | Hotel limit |\n|---|---|\n| Bonn | not set |\n| Rome | 180 euros |", '"City | Hotel limit ... Rome | 180 euros"'),
    ("Name,Price,Stock\nA,5,no\nGateway,500,12", '"Name,Price,Stock ... Gateway,500,12"'),
    ("Interns get no leave. Employees have ten days of leave.", '"Employees have ten days of leave"'),
    ("It costs 1,500 euros, 50% less than in 2025.", '"It costs 1,500 euros, 50% less than in 2025"'),
    ("It has -5 degrees at night and +3.5 °C by day.", '"It has −5 degrees at night and +3.5 °C by day"'),
    ("The “fast” lane — for all — is closed today.", '"The \'fast\' lane – for all – is closed today"'),
]  # fmt: skip

MARKS = (
    '"{}"',
    "“{}”",
    "„{}“",
    '„{}"',
    "«{}»",
    "« {} »",
    "»{}«",
    "‹{}›",
    "「{}」",
    "『{}』",
    "《{}》",
    "＂{}＂",
    "<q>{}</q>",
    "‚{}‘",
)

_SENTENCE = re.compile(r"(?:[^.!?。！？।؟]|[.!?](?!\s|\Z))+[.!?。！？।؟]+")
_NUMBER = re.compile(r"\d+")
_DENSE = re.compile("[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff]")
NEGATIONS = {
    "en": ("not", "never", "no", "without"),
    "de": ("nicht", "kein", "keine", "ohne"),
    "ru": ("не", "без", "нет"),
    "hi": ("नहीं", "बिना"),
    "zh": ("不", "没", "无"),
    "ar": ("لا", "لم", "لن", "غير"),
}


@dataclass(frozen=True)
class Generated:
    """A quotation of a text.

    Attributes:
        change: What was changed; "none" for a true quotation.
        quotation: With quotation marks.
        variation: How the writing of a true quotation differs.
    """

    source: str
    quotation: str
    change: str
    variation: str = ""

    @property
    def is_true(self) -> bool:
        return self.change == "none"


def generated(texts: list[str], language: str, seed: int, count: int) -> Iterator[Generated]:
    """Yield true quotations of texts, and one of each kind of change that fits."""
    chance = random.Random(seed)
    texts = [text for text in texts if not re.search(r"\[\d", text)]  # a number in brackets is a citation marker
    for _ in range(count):
        text = chance.choice(texts)
        run = run_of_sentences(text, chance)
        if run is None:
            continue
        marks = chance.choice(
            [marks for marks in MARKS if not set(marks.replace("{}", "")) & set(run)] or ["<q>{}</q>"]
        )
        yield Generated(text, marks.format(_rewrapped(run, chance)), "none")
        for name, change in _CHANGES.items():
            changed = change(run, chance, language)
            if changed is not None and (change is _cut_after_number or key(changed) not in key(text)):
                yield Generated(text, marks.format(changed), name)


def key(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text).split())


def run_of_sentences(text: str, chance: random.Random) -> str | None:
    sentences = [found for found in _SENTENCE.finditer(text) if len(found[0]) > 30]
    if not sentences:
        return None
    first = chance.randrange(len(sentences))
    last = min(len(sentences) - 1, first + chance.randrange(2))
    run = text[sentences[first].start() : sentences[last].end()].strip()
    return run if len(run) < 900 and "\n\n" not in run else None


def _rewrapped(run: str, chance: random.Random) -> str:
    return re.sub(r"(?<=\S) (?=\S)", lambda _: chance.choice((" ", "  ", "\u00a0", " ")), run.replace("\n", " "))


def words_in(run: str) -> list[re.Match[str]]:
    dense = bool(_DENSE.search(run))
    return list(
        re.finditer(r"[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff]" if dense else r"(?<!\S)[^\W\d_]{2,}(?!\S)", run)
    )


def _another_number(run: str, chance: random.Random, _: str) -> str | None:
    found = list(_NUMBER.finditer(run))
    if not found:
        return None
    number = chance.choice(found)
    digit = chance.randrange(number.start(), number.end())
    other = chance.choice([one for one in "123456789" if one != run[digit]])
    return run[:digit] + other + run[digit + 1 :]


def _shorter_number(run: str, chance: random.Random, _: str) -> str | None:
    found = [number for number in _NUMBER.finditer(run) if len(number[0]) > 1]
    if not found:
        return None
    number = chance.choice(found)
    return run[: number.start()] + run[number.start() + 1 :]


def _split_number(run: str, chance: random.Random, _: str) -> str | None:
    found = [number for number in _NUMBER.finditer(run) if len(number[0]) > 1]
    if not found:
        return None
    number = chance.choice(found)
    return run[: number.start() + 1] + chance.choice((" ", ",", ".", "*", "_", "²")) + run[number.start() + 1 :]


def _cut_after_number(run: str, chance: random.Random, _: str) -> str | None:
    found = [number for number in re.finditer(r"\d+(?=[.,]?\d|\s?%)", run) if number.start() > 25]
    return run[: chance.choice(found).end()] if found else None


def _sign(run: str, chance: random.Random, _: str) -> str | None:
    found = list(re.finditer(r"(?<=\s)\d", run))
    if not found:
        return None
    place = chance.choice(found).start()
    return run[:place] + chance.choice("-+~<$") + run[place:]


def _unit(run: str, chance: random.Random, _: str) -> str | None:
    found = list(re.finditer(r"(?<=\d)(?=\s)", run))
    if not found:
        return None
    place = chance.choice(found).start()
    return run[:place] + chance.choice(("%", "°", "²", "″", "k")) + run[place:]


def _another_word(run: str, chance: random.Random, _: str) -> str | None:
    words = words_in(run)
    if len(words) < 2:
        return None
    one, other = chance.sample(words, 2)
    return None if one[0] == other[0] else run[: one.start()] + other[0] + run[one.end() :]


def _missing_word(run: str, chance: random.Random, _: str) -> str | None:
    words = words_in(run)[1:-1]
    if not words:
        return None
    word = chance.choice(words)
    return run[: word.start()] + run[word.end() :].lstrip()


def _joined_words(run: str, chance: random.Random, _: str) -> str | None:
    spaces = list(re.finditer(r"(?<=[^\W\d_]) (?=[^\W\d_])", run))
    spaces = [space for space in spaces if not _DENSE.search(run[space.start() - 1 : space.end() + 1])]
    if not spaces:
        return None
    space = chance.choice(spaces)
    return run[: space.start()] + chance.choice(("", "-", "*", "\u200b")) + run[space.end() :]


def _order(run: str, chance: random.Random, _: str) -> str | None:
    words = words_in(run)
    places = [place for place in range(len(words) - 1) if words[place][0] != words[place + 1][0]]
    if not places:
        return None
    place = chance.choice(places)
    one, other = words[place], words[place + 1]
    return run[: one.start()] + other[0] + run[one.end() : other.start()] + one[0] + run[other.end() :]


def _added_negation(run: str, chance: random.Random, language: str) -> str | None:
    words = words_in(run)[1:]
    if not words:
        return None
    place = chance.choice(words).start()
    space = "" if _DENSE.search(run) else " "
    return run[:place] + chance.choice(NEGATIONS[language]) + space + run[place:]


def _negations(run: str, language: str) -> list[re.Match[str]]:
    pattern = "|".join(NEGATIONS[language])
    return list(re.finditer(pattern if language == "zh" else rf"(?<!\S)(?:{pattern}) ", run))


def _removed_negation(run: str, chance: random.Random, language: str) -> str | None:
    found = _negations(run, language)
    if not found:
        return None
    negation = chance.choice(found)
    return run[: negation.start()] + run[negation.end() :]


def _omitted_negation(run: str, chance: random.Random, language: str) -> str | None:
    found = _negations(run, language)
    if not found:
        return None
    negation = chance.choice(found)
    return f"{run[: negation.start()].rstrip()} ... {run[negation.end() :]}"


def _selection(run: str, chance: random.Random, _: str) -> str | None:
    """Words with omissions between them."""
    words = words_in(run)
    if len(words) < 8:
        return None
    chosen = sorted(chance.sample(range(len(words)), 4))
    if chosen[-1] - chosen[0] < 5:
        return None
    return " ... ".join(words[place][0] for place in chosen)


_CHANGES: dict[str, Callable[[str, random.Random, str], str | None]] = {
    "another number": _another_number,
    "a digit less": _shorter_number,
    "a divided number": _split_number,
    "a number cut off": _cut_after_number,
    "a sign": _sign,
    "a unit": _unit,
    "another word": _another_word,
    "a word less": _missing_word,
    "joined words": _joined_words,
    "another order": _order,
    "an added negation": _added_negation,
    "a removed negation": _removed_negation,
    "an omitted negation": _omitted_negation,
    "a selection of words": _selection,
}
