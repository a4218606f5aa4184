"""The tables of the SQLite file, as a list of migrations."""

from typing import Final

_VERSION_1: Final = """
CREATE TABLE knowledge_base (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    status TEXT NOT NULL,
    search TEXT NOT NULL,                -- type of the vector store
    embedding TEXT NOT NULL,
    dimension INTEGER NOT NULL,
    request TEXT NOT NULL,               -- JSON, as created
    created_at REAL NOT NULL,
    updated_at REAL NOT NULL
);

CREATE TABLE data_source (
    id TEXT PRIMARY KEY,
    knowledge_base_id TEXT NOT NULL REFERENCES knowledge_base(id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    status TEXT NOT NULL,
    request TEXT NOT NULL,               -- JSON, as created
    created_at REAL NOT NULL,
    updated_at REAL NOT NULL,
    UNIQUE (knowledge_base_id, name)
);

CREATE TABLE document (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    knowledge_base_id TEXT NOT NULL,
    data_source_id TEXT NOT NULL,
    type TEXT NOT NULL,                  -- S3 or CUSTOM
    name TEXT NOT NULL,                  -- S3 URI or custom id
    status TEXT NOT NULL,
    reason TEXT,
    generation INTEGER NOT NULL,         -- counts submissions; only the newest may finish
    content_tag TEXT,                    -- ETag of what is indexed
    metadata_tag TEXT,                   -- ETag of the sidecar of what is indexed
    attributes TEXT NOT NULL DEFAULT '{}',
    updated_at REAL NOT NULL,
    UNIQUE (data_source_id, name)
);
CREATE INDEX document_by_knowledge_base ON document (knowledge_base_id);

CREATE TABLE submission (
    document_id INTEGER PRIMARY KEY REFERENCES document(id) ON DELETE CASCADE,
    sequence INTEGER NOT NULL,           -- first come, first served
    action TEXT NOT NULL,                -- ingest or delete
    job_id TEXT,
    request TEXT NOT NULL,               -- JSON, without inline content
    content BLOB                         -- inline content
);
CREATE INDEX submission_by_sequence ON submission (action, sequence);
CREATE INDEX submission_by_job ON submission (job_id);

CREATE TABLE chunk (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    document_id INTEGER NOT NULL,
    public_id TEXT NOT NULL,
    text TEXT NOT NULL,
    page INTEGER
);
CREATE INDEX chunk_by_document ON chunk (document_id);

-- Apart from the texts, so that reading one does not read over the other.
CREATE TABLE vector (
    chunk_id INTEGER PRIMARY KEY,
    knowledge_base_id TEXT NOT NULL,
    document_id INTEGER NOT NULL,
    value BLOB NOT NULL                  -- float16, little endian
);

CREATE TABLE attribute (
    document_id INTEGER NOT NULL,
    key TEXT NOT NULL,
    kind TEXT NOT NULL,
    in_list INTEGER NOT NULL,
    value
);
CREATE INDEX attribute_by_value ON attribute (key, value, kind, document_id);
CREATE INDEX attribute_by_document ON attribute (document_id);

CREATE TABLE ingestion_job (
    id TEXT PRIMARY KEY,
    knowledge_base_id TEXT NOT NULL,
    data_source_id TEXT NOT NULL,
    description TEXT,
    status TEXT NOT NULL,
    statistics TEXT NOT NULL,            -- JSON
    failures TEXT NOT NULL,              -- JSON
    started_at REAL NOT NULL,
    updated_at REAL NOT NULL
);
CREATE INDEX ingestion_job_by_data_source ON ingestion_job (data_source_id);

CREATE TABLE client_token (
    operation TEXT NOT NULL,
    scope TEXT NOT NULL,
    token TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    answer TEXT NOT NULL,                -- JSON
    created_at REAL NOT NULL,
    PRIMARY KEY (operation, scope, token)
);
"""

_VERSION_2: Final = """
-- What a search returns in the place of its chunks, where chunks are parts of a larger one.
CREATE TABLE parent (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    document_id INTEGER NOT NULL,
    public_id TEXT NOT NULL,
    text TEXT NOT NULL,
    page INTEGER
);
CREATE INDEX parent_by_document ON parent (document_id);
ALTER TABLE chunk ADD COLUMN parent_id INTEGER;

CREATE TABLE tag (
    knowledge_base_id TEXT NOT NULL REFERENCES knowledge_base(id) ON DELETE CASCADE,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (knowledge_base_id, key)
);

-- When CREATING or DELETING may end; null where nothing is to come.
ALTER TABLE knowledge_base ADD COLUMN due_at REAL;
ALTER TABLE data_source ADD COLUMN due_at REAL;

ALTER TABLE submission ADD COLUMN due_at REAL NOT NULL DEFAULT 0;        -- when the work may be done
ALTER TABLE submission ADD COLUMN next_at REAL;                          -- when the status changes until then
ALTER TABLE submission ADD COLUMN step_seconds REAL NOT NULL DEFAULT 0;  -- how long each of these statuses stays
ALTER TABLE submission ADD COLUMN taken INTEGER NOT NULL DEFAULT 0;      -- 1 while it is worked on
ALTER TABLE submission ADD COLUMN former_status TEXT;                    -- of the document; null where it was new
ALTER TABLE submission ADD COLUMN former_reason TEXT;
ALTER TABLE submission ADD COLUMN request_id TEXT;                       -- the call that submitted it directly
ALTER TABLE document ADD COLUMN job_id TEXT;                             -- the job that submitted it last
DROP INDEX submission_by_sequence;
CREATE INDEX submission_by_sequence ON submission (sequence);
CREATE INDEX submission_by_turn ON submission (action, due_at, sequence) WHERE taken = 0;
CREATE INDEX submission_by_change ON submission (next_at) WHERE next_at IS NOT NULL;
"""

_VERSION_3: Final = """
-- S3 Vectors.
CREATE TABLE vector_bucket (
    name TEXT PRIMARY KEY,
    default_mode TEXT NOT NULL,          -- of indexes that are made in it
    encryption TEXT NOT NULL,            -- JSON
    policy TEXT,
    created_at REAL NOT NULL
);

CREATE TABLE vector_index (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    bucket TEXT NOT NULL REFERENCES vector_bucket(name),
    name TEXT NOT NULL,
    dimension INTEGER NOT NULL,
    metric TEXT NOT NULL,                -- cosine or euclidean
    mode TEXT NOT NULL,                  -- CLASSIC or ENHANCED
    non_filterable TEXT NOT NULL,        -- JSON list of metadata keys
    encryption TEXT NOT NULL,            -- JSON
    created_at REAL NOT NULL,
    UNIQUE (bucket, name)
);

-- Each has a full-text table of its own.
CREATE TABLE vector_text_search (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    index_id INTEGER NOT NULL REFERENCES vector_index(id) ON DELETE CASCADE,
    metadata_key TEXT NOT NULL,
    language TEXT,
    UNIQUE (index_id, metadata_key)
);

CREATE TABLE stored_vector (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    index_id INTEGER NOT NULL REFERENCES vector_index(id) ON DELETE CASCADE,
    key TEXT NOT NULL,
    value BLOB NOT NULL,                 -- float32, little endian
    metadata TEXT NOT NULL,              -- JSON
    filterable TEXT NOT NULL,            -- JSON, the part of it that filters see
    UNIQUE (index_id, key)
);

CREATE TABLE vector_tag (
    arn TEXT NOT NULL,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (arn, key)
);
"""

_VERSION_4: Final = """
-- Rows of a CSV file, each with attributes of its own. In attribute and vector, the id of a record, negated, stands in
-- the place of its document's.
CREATE TABLE record (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    knowledge_base_id TEXT NOT NULL,
    document_id INTEGER NOT NULL,
    attributes TEXT NOT NULL             -- JSON, those of the document included
);
CREATE INDEX record_by_document ON record (document_id);
CREATE INDEX record_by_knowledge_base ON record (knowledge_base_id);
CREATE INDEX vector_by_document ON vector (document_id);
ALTER TABLE chunk ADD COLUMN record_id INTEGER;
"""

_VERSION_5: Final = """
ALTER TABLE submission ADD COLUMN light INTEGER NOT NULL DEFAULT 0;      -- 1 if it needs little time whatever is in it
CREATE INDEX submission_by_light_turn ON submission (due_at, sequence) WHERE taken = 0 AND light = 1;
"""

_VERSION_6: Final = """
ALTER TABLE vector_tag RENAME TO resource_tag;
INSERT INTO resource_tag
    SELECT 'arn:aws:bedrock:us-east-1:000000000000:knowledge-base/' || knowledge_base_id, key, value FROM tag;
DROP TABLE tag;
"""

MIGRATIONS: Final = (_VERSION_1, _VERSION_2, _VERSION_3, _VERSION_4, _VERSION_5, _VERSION_6)
"""Each upgrades the version before it (PRAGMA user_version). Never edit a released migration."""

VERSION: Final = len(MIGRATIONS)


def text_index(knowledge_base_id: str) -> str:
    """Return the name of a knowledge base's full-text table: one each, so that BM25 counts only its own chunks."""
    assert knowledge_base_id.isalnum()
    return f"text_{knowledge_base_id}"


def create_text_index(knowledge_base_id: str) -> str:
    """Return the statement that creates it, with the contextual header and the chunk as unstored columns."""
    return (
        f"CREATE VIRTUAL TABLE {text_index(knowledge_base_id)} USING fts5("
        "header, body, content='', contentless_delete=1, tokenize='porter unicode61 remove_diacritics 2')"
    )


def vector_text_index(text_search_id: int) -> str:
    """Return the name of the full-text table of one metadata key of one vector index."""
    return f"vector_text_{text_search_id:d}"


def create_vector_text_index(text_search_id: int, language: str | None) -> str:
    """Return the statement that creates it; only English words are stemmed."""
    stemmer = "porter " if language == "en" else ""
    return (
        f"CREATE VIRTUAL TABLE {vector_text_index(text_search_id)} USING fts5("
        f"body, content='', contentless_delete=1, tokenize='{stemmer}unicode61 remove_diacritics 2')"
    )
