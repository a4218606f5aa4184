"""Compares bucket, registry and knowledge base, requests checks of differences, and synchronises the data source.

::

    compare.py          the differences; reads and writes nothing
    run.py              one comparison, from reading to the report
    synchronisation.py  one full synchronisation, in steps
    messages.py         messages of the jobs queue
    service.py          the function: starts jobs, takes their steps, and ends them
"""
