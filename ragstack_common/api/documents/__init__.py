"""Documents and ingestion jobs over HTTP: what a program asks, what it is answered, and the services between the two.

::

    models.py        documents: requests and answers
    job_models.py    ingestion jobs: requests and answers
    routes.py        which path is answered by what; for the function, and for the description of the interface
    settings.py      what the function is told by its environment
    service.py       the services, made from the environment
    uploads.py       permission to upload a document, bound to what it is for
    documents.py     listing, looking at and deleting documents
    jobs.py          starting and listing jobs
    facets.py        how many searchable documents have which attribute
    answers.py       from a record of the registry to what is answered
    bucket.py        the documents bucket
    failures.py      errors of AWS to ours
"""
