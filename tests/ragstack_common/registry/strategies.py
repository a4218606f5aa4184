"""Hypothesis strategies for records."""

import json
from typing import Any

from hypothesis import strategies as st

from ragstack_common.registry.records import (
    DocumentRecord,
    Observation,
    Operation,
    OperationKind,
    Status,
    Transition,
)

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)
NUMBERS = st.just(0.0) | st.floats(min_value=1e-6, max_value=2.5e11)
COUNTS = st.integers(0, 2**40)
SEQUENCERS = st.text("0123456789ABCDEF", max_size=18)
KEYS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
VALUES: Any = st.one_of(
    TEXTS,
    st.just(""),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False, allow_infinity=False),
    st.lists(TEXTS, max_size=3),
)
ATTRIBUTES = st.dictionaries(st.one_of(st.sampled_from(["corpus", "version", "topic"]), KEYS), VALUES, max_size=5)
STATUSES = st.sampled_from([status for status in Status if status is not Status.UPLOADED])

COUNTED_UNDER = st.lists(st.tuples(TEXTS, VALUES.map(json.dumps)), max_size=4, unique=True).map(tuple)

OBSERVATIONS = st.builds(
    Observation,
    etag=st.none() | TEXTS,
    version_id=st.none() | TEXTS,
    size=COUNTS,
    last_modified=st.none() | NUMBERS,
    sidecar_etag=st.none() | TEXTS,
    sidecar_version_id=st.none() | TEXTS,
    sidecar_last_modified=st.none() | NUMBERS,
    attributes=ATTRIBUTES,
    refusal=st.none() | TEXTS,
)
OPERATIONS = st.builds(
    Operation,
    id=TEXTS,
    kind=st.sampled_from(OperationKind),
    lease_until=NUMBERS,
    accepted_at=st.none() | NUMBERS,
)
RECORDS = st.builds(
    DocumentRecord,
    uri=st.builds("s3://bucket/{}".format, TEXTS),
    revision=st.integers(1, 2**31),
    status=STATUSES,
    reason=st.none() | TEXTS,
    observed=OBSERVATIONS,
    sequencer=SEQUENCERS,
    sidecar_sequencer=SEQUENCERS,
    operation=st.none() | OPERATIONS,
    again=st.booleans(),
    attempts=COUNTS,
    in_knowledge_base=st.booleans(),
    knowledge_base_status=st.none() | TEXTS,
    knowledge_base_updated_at=st.none() | NUMBERS,
    counted=COUNTED_UNDER,
    created_at=NUMBERS,
    received_at=NUMBERS,
    updated_at=NUMBERS,
    finished_at=st.none() | NUMBERS,
    expires_at=st.none() | NUMBERS,
    history=st.lists(st.builds(Transition, NUMBERS, STATUSES, st.none() | TEXTS), max_size=4).map(tuple),
)
