"""Reads PDF files with PDFium: start with ``document``.

The text of a page comes from PDFium's list of characters through ``visible``, ``order`` and ``text``.
"""
