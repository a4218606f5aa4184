"""A Bedrock Knowledge Base on this machine: the wire protocol of the service, and real retrieval behind it.

A request's way: ``server`` → ``service`` (``wire`` finds the operation, ``validation`` checks it) → ``operations`` →
``store``. A document's way: ``operations.documents`` → ``ingestion`` (``sources``, ``parsing``, ``chunking``,
``embedding``) → ``store``.
"""
