"""A question as a program asks it, its answer, and the service between the two."""

from ragstack_common.api.query.models import Corpora, RetrieveRequest, RetrieveResponse, Versions
from ragstack_common.api.query.service import QueryService

__all__ = ["Corpora", "QueryService", "RetrieveRequest", "RetrieveResponse", "Versions"]
