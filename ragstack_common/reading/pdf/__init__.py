"""Reads PDF files with PDFium: start with ``document``.

``layers`` divides what a page draws (``drawing``): what nobody sees is left out (``traces``), and what lies on other
text comes last (``overlays``). The text of each layer comes from PDFium's list of characters through ``visible``,
``order`` and ``text``.
"""
