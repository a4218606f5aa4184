"""The document registry: the state of every document, and how many documents have which attributes.

One DynamoDB table. Every write of a document holds only if the document has not changed since it was read.
Everything that calls the table raises botocore's ClientError if the table does not answer. All times are in seconds
since 1970.

::

    table.py         keys, attributes and indexes, which the stacks share; plain values to items and back
    reads.py         reads of many items
    transactions.py  conditional writes that report which of them failed
    records.py       a document's record, and its item
    lifecycle.py     how a document gets from one state to the next
    documents.py     documents read, written and listed
    catalogue.py     how many searchable documents have which attribute
    jobs.py          reconciliations and synchronisations, and their reports
    snapshot.py      one object in S3 with the values that documents share
    coordination.py  the rate of calls, and the gate that stops direct ingestion
"""
