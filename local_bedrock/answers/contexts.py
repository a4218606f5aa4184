"""Find the passages in the prompts of clients: by their structure, so that instructions are not taken for passages."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise, takewhile
from typing import Final

MOST_LEVELS: Final = 4
"""Of tags in tags."""

_PASSAGE: Final = r"passage|document|doc|chunk|excerpt|snippet|source|search_?result|result|item|article|page|quote"
_COLLECTION: Final = (
    rf"(?:{_PASSAGE})s|contexts?|retrieved_?\w*|search_?results?|knowledge(?:_?base)?|references?|background|information|data|text"
    r"|content"
)
_HISTORY: Final = r"conversation|(?:(?:chat|conversation)_?)?history"
_TAG: Final = r"<(/?)((?:{names})(?:-\w+)?)((?:\s[^<>]*)?)>"
_PASSAGES: Final = re.compile(_TAG.format(names=f"{_PASSAGE}|{_HISTORY}"), re.IGNORECASE)
_IS_HISTORY: Final = re.compile(rf"(?:{_HISTORY})\b", re.IGNORECASE)
_COLLECTIONS: Final = re.compile(_TAG.format(names=_COLLECTION), re.IGNORECASE)
_BODIES: Final = re.compile(_TAG.format(names=r"document_contents?|contents?|text|body"), re.IGNORECASE)
_NUMBER: Final = re.compile(r"""\s(?:number|index|id|n)\s*=\s*["']?(\d{1,4})\b""", re.IGNORECASE)
_HEAD: Final = re.compile(r"\s*From [^\n]+\n\n")
"""The first line of a passage in prompts of RAGStack: the document, and the headings above."""

_NUMBERED: Final = re.compile(
    r"^[ \t]*(?:(?:passage|document|doc|source|result|chunk|excerpt|context)[ \t]+)?\[(\d{1,4})\][ \t]*:?[ \t]*"
    r"|^[ \t]*(?:passage|document|source|result|chunk|excerpt)[ \t]+#?(\d{1,4})[ \t]*[:.)][ \t]*",
    re.IGNORECASE | re.MULTILINE,
)
# A line such as "Context:" or "Answer from the following documents." that does not announce instructions.
_ANNOUNCED: Final = re.compile(
    r"^(?![^:\n]*\b(?:rules?|instructions?|guidelines?|steps|question|format)\b)[^:\n]{0,200}?"
    r"\b(?:contexts?(?: information)?|documents?|passages?|excerpts?|(?:search )?results?|sources?|information"
    r"|knowledge|texts?|snippets?|articles?|references?|facts|notes|answer (?:only )?(?:from|with|using))\b"
    r"[^:.\n]{0,80}[:.]"
    r"[ \t]*(?:\n[ \t]*(?:[-=_*#]{3,}|\"{3}|`{3}\w*)[ \t]*\n|$|(?<=:)(?=[ \t]*\S))",
    re.IGNORECASE | re.MULTILINE,
)
# What follows the passages: another label, or the second line of a pair of delimiters.
_END: Final = re.compile(
    r"^[ \t]*(?:(?:user )?(?:question|query)|q|user|human|answer|helpful answer|instructions?|rules|guidelines|task"
    r"|(?:chat |conversation )?history|conversation|assistant)[ \t]*:|^[ \t]*(?:[-=_*]{3,}|\"{3}|`{3})[ \t]*$",
    re.IGNORECASE | re.MULTILINE,
)
_ORDER: Final = (
    r"(?:then |please |always |never |only |do not |don.t )*(?:answer|use|be|do|don.t|never|always|respond|reply|say"
    r"|tell|ask|cite|write|keep|avoid|ignore|follow|give|provide|return|explain|quote|base|summari[sz]e|think|act|format"
    r"|output|after each|begin|list|refuse|assume|remember|make sure)\b"
)
_INSTRUCTION: Final = re.compile(
    rf"\b(?:you|your|yourself)\b|^\W*{_ORDER}|^\W*(?:if|when|whenever|unless)\b[^.\n]*, {_ORDER}", re.IGNORECASE
)
_BLANK_LINE: Final = re.compile(r"\n\s*\n")
_FIRST_SENTENCE: Final = re.compile(r".*?(?:[.!?:](?=\s)|\Z)", re.DOTALL)


@dataclass(frozen=True)
class GivenPassage:
    """A passage in a prompt.

    Attributes:
        text: Its content.
        number: The number by which the prompt tells the model to cite it; None if it has none.
        heading: What the prompt writes above it.
    """

    text: str
    number: int | None = None
    heading: str = ""


def given_passages(texts: Sequence[str]) -> list[GivenPassage]:
    """Return the passages in some texts: the delimited ones if there are any, and of these the numbered ones."""
    delimited = [given for text in texts for given in delimited_passages(text)]
    numbered = [given for given in delimited if given.number is not None]
    return numbered or delimited or [given for text in texts for given in undelimited_passages(text)]


def delimited_passages(text: str, levels: int = MOST_LEVELS) -> list[GivenPassage]:
    """Return what is in tags such as <document>, is numbered, or follows a line such as "Context:"."""
    for find in (partial(_tagged, levels=levels), _numbered, _announced):
        found = [given for given in find(text) if given.text.strip()]
        if found:
            return found
    return []


def undelimited_passages(text: str) -> list[GivenPassage]:
    """Return the paragraphs that don't begin with an instruction."""
    kept = [paragraph for paragraph in _BLANK_LINE.split(text) if not _instructs(paragraph)]
    return [GivenPassage("\n\n".join(kept))] if kept else []


def _tagged(text: str, levels: int) -> Iterator[GivenPassage]:
    if not levels:
        return
    passages = [(tag, content) for tag, content in _elements(text, _PASSAGES) if not _IS_HISTORY.match(tag[2])]
    for tag, content in passages:
        number, body = _NUMBER.search(tag[3]), _body(content)
        if number or body:
            yield _passage(body or content, int(number[1]) if number else None)
        else:
            yield from list(_tagged(content, levels - 1)) or [_passage(content)]
    if not passages:
        for _tag, content in _elements(text, _COLLECTIONS):
            yield from delimited_passages(content, levels - 1) or [_passage(content)]


def _body(content: str) -> str | None:
    """Return the text of a passage that consists of elements, such as its source and its content."""
    if not content.lstrip().startswith("<"):
        return None
    return next((body for _tag, body in _elements(content, _BODIES)), None)


def _passage(content: str, number: int | None = None) -> GivenPassage:
    head = _HEAD.match(content)
    heading, content = (head[0].strip(), content[head.end() :]) if head else ("", content)
    return GivenPassage(content.strip("\n"), number, heading)


def _elements(text: str, tags: re.Pattern[str]) -> list[tuple[re.Match[str], str]]:
    """Return the opening tag and the content of each outermost element, in linear time.

    A tag that is not closed is ignored: instructions mention tags.
    """
    found: list[tuple[re.Match[str], str]] = []
    opened: list[re.Match[str]] = []
    depths: Counter[str] = Counter()
    for tag in tags.finditer(text):
        depths[tag[2]] += -1 if tag[1] else 1
        if not tag[1]:
            opened.append(tag)
        elif depths[tag[2]] < 0:
            depths[tag[2]] = 0
        else:
            while (begin := opened.pop())[2] != tag[2]:
                depths[begin[2]] -= 1
            while found and found[-1][0].start() > begin.start():
                found.pop()
            found.append((begin, text[begin.end() : tag.start()]))
    return found


def _numbered(text: str) -> Iterator[GivenPassage]:
    starts = list(_NUMBERED.finditer(text))
    if not starts or int(starts[0][1] or starts[0][2]) > 1:
        return
    for match, end in pairwise([*starts, None]):
        assert match is not None
        content = _until_end(text[match.end() : end.start()]) if end else _until_instruction(text[match.end() :])
        yield GivenPassage(content, int(match[1] or match[2]))


def _announced(text: str) -> Iterator[GivenPassage]:
    announced = False
    while match := _ANNOUNCED.match(text.lstrip()) if announced else _ANNOUNCED.search(text):
        text, announced = match.string[match.end() :], True
    if announced:
        yield GivenPassage(_until_end(text))


def _until_end(text: str) -> str:
    end = _END.search(text)
    return text[: end.start()] if end else text


def _until_instruction(text: str) -> str:
    return "\n\n".join(takewhile(lambda paragraph: not _instructs(paragraph), _BLANK_LINE.split(_until_end(text))))


def _instructs(paragraph: str) -> bool:
    first = _FIRST_SENTENCE.match(paragraph)
    return first is not None and _INSTRUCTION.search(first[0]) is not None
