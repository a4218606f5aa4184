"""The tables of the one SQLite file."""

from typing import Final

VERSION: Final = 1

TABLES: Final = """
CREATE TABLE IF NOT EXISTS knowledge_base (
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

CREATE TABLE IF NOT EXISTS data_source (
    id TEXT PRIMARY KEY,
    knowledge_base_id TEXT NOT NULL REFERENCES knowledge_base(id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    status TEXT NOT NULL,
    request TEXT NOT NULL,               -- JSON, as created
    created_at REAL NOT NULL,
    updated_at REAL NOT NULL,
    UNIQUE (knowledge_base_id, name)
);

CREATE TABLE IF NOT EXISTS document (
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
CREATE INDEX IF NOT EXISTS document_by_knowledge_base ON document (knowledge_base_id);

CREATE TABLE IF NOT EXISTS submission (
    document_id INTEGER PRIMARY KEY REFERENCES document(id) ON DELETE CASCADE,
    sequence INTEGER NOT NULL,           -- first come, first served
    action TEXT NOT NULL,                -- ingest or delete
    job_id TEXT,
    request TEXT NOT NULL,               -- JSON, without inline content
    content BLOB                         -- inline content
);
CREATE INDEX IF NOT EXISTS submission_by_sequence ON submission (action, sequence);
CREATE INDEX IF NOT EXISTS submission_by_job ON submission (job_id);

CREATE TABLE IF NOT EXISTS chunk (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    document_id INTEGER NOT NULL,
    public_id TEXT NOT NULL,
    text TEXT NOT NULL,
    page INTEGER
);
CREATE INDEX IF NOT EXISTS chunk_by_document ON chunk (document_id);

-- Apart from the texts, so that reading one does not read over the other.
CREATE TABLE IF NOT EXISTS vector (
    chunk_id INTEGER PRIMARY KEY,
    knowledge_base_id TEXT NOT NULL,
    document_id INTEGER NOT NULL,
    value BLOB NOT NULL                  -- float16, little endian
);

CREATE TABLE IF NOT EXISTS attribute (
    document_id INTEGER NOT NULL,
    key TEXT NOT NULL,
    kind TEXT NOT NULL,
    in_list INTEGER NOT NULL,
    value
);
CREATE INDEX IF NOT EXISTS attribute_by_value ON attribute (key, value, kind, document_id);
CREATE INDEX IF NOT EXISTS attribute_by_document ON attribute (document_id);

CREATE TABLE IF NOT EXISTS ingestion_job (
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
CREATE INDEX IF NOT EXISTS ingestion_job_by_data_source ON ingestion_job (data_source_id);

CREATE TABLE IF NOT EXISTS client_token (
    operation TEXT NOT NULL,
    scope TEXT NOT NULL,
    token TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    answer TEXT NOT NULL,                -- JSON
    created_at REAL NOT NULL,
    PRIMARY KEY (operation, scope, token)
);
"""


def text_index(knowledge_base_id: str) -> str:
    """Name the full-text table of a knowledge base: one each, so that BM25 counts only its own chunks."""
    assert knowledge_base_id.isalnum()
    return f"text_{knowledge_base_id}"


def create_text_index(knowledge_base_id: str) -> str:
    """Return the statement that creates it: two columns, the contextual header and the chunk, neither stored."""
    return (
        f"CREATE VIRTUAL TABLE {text_index(knowledge_base_id)} USING fts5("
        "header, body, content='', contentless_delete=1, tokenize='porter unicode61 remove_diacritics 2')"
    )
