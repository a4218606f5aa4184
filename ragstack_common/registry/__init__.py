"""The document registry: what became of every document, and how many documents have which attributes.

One DynamoDB table. Nothing else of the project writes to it, and every write of a document holds only if the document
is still as it was read.

::

    table.py          names of keys, attributes and indexes, which the stacks share
    records.py        a document, as the registry knows it
    life.py           how a document gets from one state to the next
    answers.py        what follows from the knowledge base's answers
    items.py          records to items of the table and back
    attributes.py     single attributes of an item, each read with a check
    replacement.py    a record for a document whose item cannot be read
    documents.py      reading and writing documents, in batches
    transactions.py   conditional writes that tell who lost
    catalogue.py      how many searchable documents have which attribute
    listing.py        documents in pages, by status and corpus
    jobs.py           reconciliations and synchronisations, and their reports
    gate.py           what direct ingestion waits at during a full synchronisation
    call_rate.py      a rate of calls that all functions keep together
"""
