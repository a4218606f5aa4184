"""Limits of requests and files that several rooms check, with the source of each."""

from typing import Final

MAX_CORPORA: Final = 20
"""Each is a search of its own, and an account is allowed about 20 searches a second."""

MAX_QUERY_CHARACTERS: Final = 20_000
"""Source: bedrock-agent-runtime, KnowledgeBaseQueryTextString. Accounts may have a lower quota."""

MAX_RESULTS: Final = 100
"""Source: bedrock-agent-runtime, KnowledgeBaseVectorSearchConfiguration$numberOfResults."""

MAX_TURNS: Final = 1_000
MAX_PASSAGES: Final = 10

MAX_CANDIDATES: Final = 1_000
"""Ten pages of Retrieve, one after the other: more would not come before the deadline."""

MAX_RETRIEVAL_SECONDS: Final = 24
"""Leaves the function time to answer within API Gateway's 29 seconds."""

MAX_ANSWER_SECONDS: Final = 890
"""Lambda ends the function after 900 seconds; the error must be sent before."""

MAX_DOCUMENT_BYTES: Final = 50 * 1024 * 1024
"""Limit of the knowledge base. Source: Bedrock user guide, prerequisites of knowledge base data."""

MAX_SIDECAR_BYTES: Final = 10 * 1024
"""Source: user guide of Knowledge Bases, metadata files."""
