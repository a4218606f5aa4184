"""Which documents a user may see, by their access control lists."""

from dataclasses import dataclass

import apsw

from local_bedrock.search.sql import Sql


@dataclass(frozen=True)
class Reader:
    """Who reads documents that may have access control lists; without a user, only those without a list are shown."""

    user_id: str | None

    def to_sql(self) -> Sql:
        """Return the condition of the documents that may be shown, as SQL over ``document``, and its parameters."""
        if self.user_id is None:
            return "document.acl IS NULL", []
        listed = "EXISTS (SELECT 1 FROM json_each(document.acl, '$.{}') WHERE value = ?)"
        sql = f"(document.acl IS NULL OR {listed.format('allow')} AND NOT {listed.format('deny')})"
        return sql, [self.user_id, self.user_id]

    def may_read(self, connection: apsw.Connection, document_id: int) -> bool:
        """Whether a document may be shown."""
        sql, parameters = self.to_sql()
        query = f"SELECT 1 FROM document WHERE id = ? AND {sql}"  # noqa: S608 - no input in it
        return connection.execute(query, (document_id, *parameters)).get is not None


def has_access_lists(connection: apsw.Connection, knowledge_base_id: str) -> bool:
    """Whether a document of a knowledge base has an access control list."""
    query = "SELECT EXISTS (SELECT 1 FROM document WHERE knowledge_base_id = ? AND acl IS NOT NULL)"
    return bool(connection.execute(query, (knowledge_base_id,)).get)
