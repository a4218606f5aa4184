"""Words, numbers, languages, sentences, sections and positions of texts.

Functions of strings; files are in ``reading``, and questions in ``search`` and ``answers``. Start with ``words``.
"""
