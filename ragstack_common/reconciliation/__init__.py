"""Bucket, registry and knowledge base compared, and what differs looked at again; the whole data source synchronised.

::

    settings.py          what the function `reconcile` is told
    sources.py           registry, bucket and knowledge base, in pages
    memory.py            what is remembered of a document while the three are read: two numbers
    differences.py       the kinds of differences, counted and sampled
    comparison.py        what differs; reads and writes nothing
    suspects.py          what differs is read once more, and sent to the ingestion queue
    repairs.py           items that cannot be read, replaced
    catalogue_counts.py  the catalogue's counts, made again
    reconciliation.py    one comparison, from beginning to end
    synchronisation.py   one full synchronisation, in steps between which nobody waits
    service.py           the function: which job is to be gone on with, by whom, and how it ends
"""
