"""Answers from passages, with verified citations. Searches are in ``search``, and the route in ``services``.

Start with ``answering``: it selects passages, asks a model (``models``) or quotes (``quote``), and checks the answer
(``verify``).
"""
