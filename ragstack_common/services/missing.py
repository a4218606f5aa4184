"""What a question names and no searchable document has: "No searchable document has customer Northwind and year 2024".

The question is compared with the values of all documents that the caller may see, also of those that failed or are not
indexed yet. A claim is made only if the registry proves it; in doubt, nothing is said.
"""

import math
import re
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from threading import Lock
from typing import Final, NamedTuple

from cachetools import LRUCache

from ragstack_common.access.callers import Caller
from ragstack_common.access.guard import Guard
from ragstack_common.answers.verify.negations import dense_negations, is_negation
from ragstack_common.core.reporting import reaching_the_registry, redacted_or_none
from ragstack_common.core.uris import file_name, key_of_uri
from ragstack_common.filters import Scalar
from ragstack_common.registry.directory import Directory
from ragstack_common.registry.documents import DocumentRegistry
from ragstack_common.registry.entries import Entries, NamedValues
from ragstack_common.registry.records import SEARCHABLE, DocumentRecord, Status
from ragstack_common.search.inference import is_clear
from ragstack_common.search.models import Missing, MissingDocument, MissingValue, SearchOutcome
from ragstack_common.search.naming import ADDED_PREFIXES, Name, QuestionTerms, Values, as_text, fold
from ragstack_common.settings.search import DOCUMENTS_PER_VALUE, MIN_VALUES
from ragstack_common.text.characters import DENSE_RANGES
from ragstack_common.text.languages import ENGLISH, STOP_WORDS
from ragstack_common.text.spelling import with_ascii_digits

MAX_SHOWN: Final = 3
"""Documents that a claim names."""

MAX_COMPARED: Final = 25
"""Documents with all named values whose records are read. With more, nothing is claimed."""

MAX_ATTRIBUTES: Final = 3
MAX_COMBINATIONS: Final = 9
MAX_CHARACTERS: Final = 1_000
"""A longer question is a text: its names are not what it asks for."""

MAX_UNSHARED: Final = 5_000
"""An attribute with more values than this, few of them shared, is a description of documents."""

FRESH_SECONDS: Final = 10.0
"""Age of the values with which questions are compared. What they have in common is always read anew."""

MIN_DENSE: Final = 2
"""Characters of a value in a script without spaces."""

MIN_CASELESS: Final = 3

_DENSE: Final = re.compile(f"[{DENSE_RANGES}]")
_BORDER: Final = re.compile(f"(?<=[0-9])(?=[{DENSE_RANGES}])|(?<=[{DENSE_RANGES}])(?=[0-9])")
_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}|\d{1,2}[./]\d{1,2}[./]\d{4}")
_OTHERS: Final = frozenset(
    [
        *("other", "besides", "apart", "unlike", "instead", "rather", "excluding", "andere", "anderen"),
        *("autre", "autres", "otros", "otras", "altri", "altre"),
    ]
)
"""Words that may say that a question is not about what it names, next to negations."""


class _Group(NamedTuple):
    """What the same words of a question name: one value, maybe of several attributes.

    *is_exact* says that the words are the whole value; *places* are those of the words, empty for years.
    """

    pairs: tuple[tuple[str, Scalar], ...]
    places: frozenset[int]
    is_exact: bool

    @property
    def keys(self) -> frozenset[str]:
        return frozenset(key for key, _ in self.pairs)


class _Known(NamedTuple):
    """The values that a caller's questions can name, and the attributes whose values several documents share."""

    values: Mapping[str, Values]
    shared: Collection[str]


class _Recent(NamedTuple):
    """The values of the present object, and what callers with some labels know of them: 7 MB for 10,000 values."""

    values: NamedValues
    known: LRUCache[frozenset[str] | None, _Known]


@dataclass(frozen=True)
class Claim:
    """A claim, and the values that it is about: of each group, one."""

    missing: Missing
    groups: Sequence[Sequence[tuple[str, Scalar]]]

    def holds_for(self, outcome: SearchOutcome) -> bool:
        """Whether no result of a search has all the values; the index may have what the registry does not know."""
        everything = (each.metadata for chunk in outcome.chunks for each in (chunk, *chunk.passages))
        return not any(
            all(any(_has(metadata.get(key), value) for key, value in group) for group in self.groups)
            for metadata in everything
        )


class MissingValues:
    """Compares questions with the directory of documents."""

    def __init__(
        self,
        directory: Directory,
        registry: DocumentRegistry,
        guard: Guard,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._directory = directory
        self._registry = registry
        self._guard = guard
        self._clock = clock
        self._lock = Lock()
        self._read_at = -math.inf
        self._recent: _Recent | None = None

    def claim(self, question: str, caller: Caller) -> Claim | None:
        """Return what a question names and no searchable document has, among those that the caller sees.

        Raises RegistryError if the registry or the bucket fails.
        """
        if len(question) > MAX_CHARACTERS:
            return None
        labels = self._guard.known_rules().labels(caller)
        seen = None if labels is None else frozenset(labels)
        with reaching_the_registry():
            known = self._known_to(seen)
            groups = [] if known is None else _named(question, known)
            if known is None or not groups or (entries := self._directory.read()) is None:
                return None
            found = [
                each
                for combination in _combinations(groups)
                for each in [self._judged(combination, entries, caller, seen)]
            ]
        return _chosen(found, known)

    def _known_to(self, labels: frozenset[str] | None) -> _Known | None:
        with self._lock:
            if self._clock() - self._read_at > FRESH_SECONDS:
                entries = self._directory.read()
                self._read_at = self._clock()
                if entries is None:
                    self._recent = None
                elif self._recent is None or self._recent.values is not entries.values:
                    self._recent = _Recent(entries.values, LRUCache(32))
            recent = self._recent
            found = None if recent is None else recent.known.get(labels)
        if recent is not None and found is None:
            found = _known(recent.values.seen_with(labels))
            with self._lock:
                recent.known[labels] = found
        return found

    def _judged(
        self, groups: Sequence[_Group], entries: Entries, caller: Caller, labels: frozenset[str] | None
    ) -> "_Judged":
        """Read the documents that have all of some values."""
        uris = [entry.uri for entry in entries.having([group.pairs for group in groups], labels)]
        if len(uris) > MAX_COMPARED:
            return _Judged(groups, is_missing=False)
        rules = self._guard.rules()
        records = self._registry.read(uris) if uris else {}
        hidden = self._guard.check(caller, uris).hidden if uris else frozenset[str]()
        seen = [each for uri, each in records.items() if uri not in hidden and rules.sees(caller, each.label)]
        # A document that is indexed again is counted until then, because searches find its version before.
        is_missing = not any(each.status in SEARCHABLE or each.counted for each in seen)
        return _Judged(groups, is_missing, [each for each in seen if each.status is not Status.DELETED])


class _Judged(NamedTuple):
    """A combination of values, whether no searchable document has it, and the other documents that have it."""

    groups: Sequence[_Group]
    is_missing: bool
    documents: Sequence[DocumentRecord] = ()


def _known(counts: Mapping[str, Mapping[Scalar, int]]) -> _Known:
    values, shared = {}, set()
    for key, found in counts.items():
        is_shared = len(found) >= MIN_VALUES and DOCUMENTS_PER_VALUE * len(found) <= sum(found.values())
        if found and not key.startswith(ADDED_PREFIXES) and (is_shared or len(found) <= MAX_UNSHARED):
            values[key] = Values(found)
            shared |= {key} if is_shared else set()
    return _Known(values, shared)


def _named(text: str, known: _Known) -> list[_Group]:
    """Return the values that a question names beyond doubt; none if it may exclude one of them."""
    question = QuestionTerms(_BORDER.sub(" ", with_ascii_digits(text)))
    dateless = QuestionTerms(_DATE.sub(" ", question.text))
    if any(is_negation(word) or fold(word) in _OTHERS for word in question.words) or dense_negations(text):
        return []
    found: list[tuple[frozenset[int], tuple[str, Scalar], bool]] = []
    years: dict[int, list[tuple[str, Scalar]]] = {}
    for key, values in known.values.items():
        if values.are_years:
            for year in values.named_in(dateless):
                years.setdefault(int(float(year)), []).append((key, year))
            continue
        for value, name in values.named_in(question).items():
            is_exact = fold("".join(re.findall(r"\w+", name.words))) == fold(
                "".join(re.findall(r"\w+", as_text(value)))
            )
            if _is_named(key, value, name, question, is_exact=is_exact):
                found.append((name.places, (key, value), is_exact))
        found += ((places, (key, value), True) for value, places in _dense(values, question.text))
    groups = _grouped(found)
    if not groups and not dateless.marked_years:
        return []
    return groups + [_Group(tuple(pairs), frozenset(), is_exact=True) for _, pairs in sorted(years.items())]


def _is_named(key: str, value: Scalar, name: Name, question: QuestionTerms, *, is_exact: bool) -> bool:
    """Whether words name a value beyond doubt: as a name, as a date, or next to the name of the attribute."""
    if not name.places or isinstance(value, bool):
        return False
    text, (first, last) = as_text(value), (min(name.places), max(name.places))
    beside = question.folded[max(0, first - 1) : first] + question.folded[last + 1 : last + 2]
    label = fold(re.split(r"[^\w]|_", key)[-1])
    if is_exact and (label in beside or _DATE.fullmatch(text)):
        return True
    if name.words == name.words.upper() == name.words.lower():  # a script without capitals, or a number
        return is_exact and text.isalpha() and len(text) >= MIN_CASELESS
    is_written_as_name = any(question.words[place] != question.words[place].lower() for place in name.places)
    begins = is_written_as_name and fold(text.partition(" ")[0]) in {question.folded[place] for place in name.places}
    is_common = len(name.places) == 1 and fold(name.words) in STOP_WORDS[ENGLISH]
    return is_clear(value, name) and (is_exact or begins) and not is_common


def _dense(values: Values, text: str) -> Iterator[tuple[Scalar, frozenset[int]]]:
    """Yield the values in scripts without spaces that a text contains, with places before all words."""
    if not _DENSE.search(text):
        return
    for value in values:
        if isinstance(value, str) and len(value) >= MIN_DENSE and _DENSE.match(value):
            at = text.find(value)
            if at >= 0:
                yield value, frozenset(-1 - place for place in range(at, at + len(value)))


def _grouped(found: Sequence[tuple[frozenset[int], tuple[str, Scalar], bool]]) -> list[_Group]:
    """Join the values that the same words name; of overlapping names the longer one counts."""
    groups: list[_Group] = []
    for places, pair, is_exact in sorted(found, key=lambda each: (-len(each[0]), min(each[0]), str(each[1]))):
        same = next((number for number, group in enumerate(groups) if group.places == places), None)
        if same is not None:
            group = groups[same]
            groups[same] = group._replace(pairs=(*group.pairs, pair), is_exact=group.is_exact and is_exact)
        elif all(group.places.isdisjoint(places) for group in groups):
            groups.append(_Group((pair,), places, is_exact))
    return groups


def _combinations(groups: Sequence[_Group]) -> list[tuple[_Group, ...]]:
    """Return the combinations of one value of each attribute that is named."""
    by_keys: dict[frozenset[str], list[_Group]] = {}
    for group in groups:
        same = next((keys for keys in by_keys if keys & group.keys), group.keys)
        by_keys.setdefault(same, []).append(group)
    if len(by_keys) > MAX_ATTRIBUTES:
        return []
    found = [*product(*by_keys.values())]
    return found if len(found) <= MAX_COMBINATIONS else []


def _chosen(judged: Sequence[_Judged], known: _Known) -> Claim | None:
    """Return the claim about the first combination that only other documents have; or that none has."""
    missing = [each for each in judged if each.is_missing]
    for each in missing:
        if each.documents:
            return _claim(each)
    if not missing or len(missing) < len(judged):
        return None
    first = missing[0]
    is_certain = len(first.groups) > 1 and all(
        group.is_exact and len(group.pairs) == 1 and group.keys <= {*known.shared} for group in first.groups
    )
    return _claim(first) if is_certain else None


def _claim(judged: _Judged) -> Claim:
    documents = sorted(judged.documents, key=lambda each: (each.status is not Status.FAILED, each.uri))
    values = [_value_of(group, documents[0] if documents else None) for group in judged.groups]
    shown = [
        MissingDocument(
            id=each.id,
            key=key_of_uri(each.uri),
            name=file_name(each.uri),
            status=each.status,
            reason=redacted_or_none(each.reason),
        )
        for each in documents[:MAX_SHOWN]
    ]
    said = [f"{value.key} {as_text(value.value)}" for value in values]
    text = f"No searchable document has {_listed(said)}."
    text = " ".join([text, *map(_state, shown)])
    more = len(documents) - len(shown)
    if more:
        text += f" {more} more {'is' if more == 1 else 'are'} not searchable either."
    return Claim(Missing(tuple(values), tuple(shown), text), [group.pairs for group in judged.groups])


def _value_of(group: _Group, document: DocumentRecord | None) -> MissingValue:
    """Return the attribute and value that a document has of those that the same words name."""
    known = {} if document is None else document.observed.attributes
    own = next((pair for pair in group.pairs if _has(known.get(pair[0]), pair[1])), group.pairs[0])
    return MissingValue(*own)


def _state(document: MissingDocument) -> str:
    if document.status == Status.FAILED:
        reason = (document.reason or "the knowledge base gave no reason").rstrip(".")
        return f"{document.name} failed: {reason}."
    if document.status == Status.DELETING:
        return f"{document.name} is being deleted."
    return f"{document.name} is not indexed yet."


def _listed(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def _has(stored: object, value: Scalar) -> bool:
    members = stored if isinstance(stored, list | tuple) else [stored]
    return any(not isinstance(each, bool) and (each == value or str(each) == str(value)) for each in members)
