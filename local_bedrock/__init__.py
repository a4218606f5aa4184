"""A Bedrock Knowledge Base on this machine: the wire protocol of the service, and real retrieval behind it.

The path of a request: ``server`` → ``application`` → ``service`` (``wire`` finds the operation, ``validation`` checks
it) → ``operations`` → ``store``. The path of a document: ``operations.ingestion`` → ``ingestion`` (``reading``,
``chunking``, embedding) → ``store``.
"""
