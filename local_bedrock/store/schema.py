"""The tables of the SQLite file."""

from typing import Final

VERSION: Final = 22
"""Version of the tables, of the words in them and of what is read of files (PRAGMA user_version).

Increase it with every change of one of them: documents are then read again.
"""

INCOMPLETE: Final = "index-is-incomplete"
"""Name of the file in the data folder that says why the index was replaced, until its documents are ingested again."""

TABLES: Final = """
CREATE TABLE knowledge_base (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    status TEXT NOT NULL,
    search TEXT NOT NULL,                -- type of the vector store, or MANAGED
    embedding TEXT NOT NULL,
    dimension INTEGER NOT NULL,
    request TEXT NOT NULL,               -- JSON, as created
    created_at REAL NOT NULL,
    updated_at REAL NOT NULL,
    due_at REAL                          -- when CREATING or DELETING may end
);

CREATE TABLE data_source (
    id TEXT PRIMARY KEY,
    knowledge_base_id TEXT NOT NULL REFERENCES knowledge_base(id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    status TEXT NOT NULL,
    request TEXT NOT NULL,               -- JSON, as created
    created_at REAL NOT NULL,
    updated_at REAL NOT NULL,
    due_at REAL,
    failure TEXT,                        -- why it becomes FAILED instead of AVAILABLE
    UNIQUE (knowledge_base_id, name)
);

CREATE TABLE resource_tag (
    arn TEXT NOT NULL,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (arn, key)
);

CREATE TABLE client_token (
    operation TEXT NOT NULL,
    scope TEXT NOT NULL,
    token TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    answer TEXT NOT NULL,                -- JSON
    created_at REAL NOT NULL,
    PRIMARY KEY (operation, scope, token)
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
    acl TEXT,                            -- JSON, as in reading/access_control.py; null if its source has none
    updated_at REAL NOT NULL,
    job_id TEXT,                         -- the job that submitted it last
    UNIQUE (data_source_id, name)
);
CREATE INDEX document_by_knowledge_base ON document (knowledge_base_id);
CREATE INDEX document_with_acl ON document (knowledge_base_id) WHERE acl IS NOT NULL;

-- The files of indexed documents in managed knowledge bases: inline content, or where the file is.
CREATE TABLE original (
    document_id INTEGER PRIMARY KEY REFERENCES document(id) ON DELETE CASCADE,
    format TEXT NOT NULL,
    uri TEXT,
    mime_type TEXT,
    content BLOB
);

CREATE TABLE submission (
    document_id INTEGER PRIMARY KEY REFERENCES document(id) ON DELETE CASCADE,
    sequence INTEGER NOT NULL,           -- first come, first served
    action TEXT NOT NULL,                -- ingest or delete
    job_id TEXT,
    request TEXT NOT NULL,               -- JSON, without inline content
    content BLOB,                        -- inline content
    due_at REAL NOT NULL DEFAULT 0,      -- when the work may be done
    next_at REAL,                        -- when the status changes until then
    step_seconds REAL NOT NULL DEFAULT 0,-- how long each of these statuses lasts
    taken INTEGER NOT NULL DEFAULT 0,    -- 1 while it is processed
    former_status TEXT,                  -- of the document; null if it was new
    former_reason TEXT,
    request_id TEXT,                     -- the call that submitted it directly
    speed INTEGER NOT NULL DEFAULT 0    -- 0 may take long, 1 is small, 2 is short and needs no conversion
);
CREATE INDEX submission_by_job ON submission (job_id);
CREATE INDEX submission_by_sequence ON submission (sequence);
CREATE INDEX submission_by_turn ON submission (action, due_at, sequence) WHERE taken = 0;
CREATE INDEX submission_by_speed ON submission (speed DESC, due_at, sequence) WHERE taken = 0 AND speed > 0;
CREATE INDEX submission_by_change ON submission (next_at) WHERE next_at IS NOT NULL;

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

CREATE TABLE chunk (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    document_id INTEGER NOT NULL,
    public_id TEXT NOT NULL,
    header TEXT NOT NULL,                -- embedded with the text, not returned
    text TEXT NOT NULL,
    page INTEGER,
    parent_id INTEGER,
    record_id INTEGER,
    position TEXT                        -- JSON, metadata except the page
);
CREATE INDEX chunk_by_document ON chunk (document_id);
CREATE INDEX chunk_by_public_id ON chunk (public_id);

-- A search returns it instead of the chunks in it (hierarchical chunking).
CREATE TABLE parent (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    document_id INTEGER NOT NULL,
    public_id TEXT NOT NULL,
    text TEXT NOT NULL,
    page INTEGER,
    position TEXT                        -- as in chunk
);
CREATE INDEX parent_by_document ON parent (document_id);

-- A row of a CSV file with its own attributes. In attribute and vector, document_id is the negated id of the record.
CREATE TABLE record (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    knowledge_base_id TEXT NOT NULL,
    document_id INTEGER NOT NULL,
    attributes TEXT NOT NULL             -- JSON, with those of the document
);
CREATE INDEX record_by_document ON record (document_id);
CREATE INDEX record_by_knowledge_base ON record (knowledge_base_id);

-- What is in memory. Apart from the texts, so that reading one does not read the other.
-- code: the vector in eight bits, as in store/codes.py
-- words: those of the header and the text, as in store/postings.py
CREATE TABLE vector (
    chunk_id INTEGER PRIMARY KEY,
    knowledge_base_id TEXT NOT NULL,
    document_id INTEGER NOT NULL,
    code BLOB NOT NULL,
    words BLOB NOT NULL DEFAULT x''
);
CREATE INDEX vector_by_document ON vector (document_id);
CREATE INDEX vector_by_knowledge_base ON vector (knowledge_base_id);

-- The vector in float16, little endian; float32 if it was put into an index.
CREATE TABLE full_vector (
    chunk_id INTEGER PRIMARY KEY REFERENCES vector(chunk_id) ON DELETE CASCADE,
    value BLOB NOT NULL
);

-- Vectors of another embedding, which replace those above when every chunk of a knowledge base has one.
CREATE TABLE replacement (
    chunk_id INTEGER PRIMARY KEY,
    embedding TEXT NOT NULL,
    value BLOB NOT NULL                  -- as in full_vector
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

-- S3 Vectors. A vector that was put is a chunk and a record of the document 0, which does not exist, and of a knowledge
-- base that is called like its index in store/vector_indexes.py; its value is float32.
CREATE TABLE vector_bucket (
    name TEXT PRIMARY KEY,
    mode TEXT NOT NULL,                  -- of new indexes
    encryption TEXT NOT NULL,            -- JSON
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
    knowledge_base_id TEXT,              -- whose chunks it holds; null if vectors are put into it
    UNIQUE (bucket, name)
);

CREATE TABLE text_search (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    index_id INTEGER NOT NULL REFERENCES vector_index(id) ON DELETE CASCADE,
    key TEXT NOT NULL,
    language TEXT,
    active_at REAL NOT NULL,             -- when BUILDING ends
    UNIQUE (index_id, key)
);

-- The words of one metadata key of a vector that was put, as in vector.
CREATE TABLE searched_text (
    text_search_id INTEGER NOT NULL REFERENCES text_search(id) ON DELETE CASCADE,
    chunk_id INTEGER NOT NULL,
    words BLOB NOT NULL,
    PRIMARY KEY (text_search_id, chunk_id)
);
"""
