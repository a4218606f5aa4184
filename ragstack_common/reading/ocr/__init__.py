"""Reads the text of pictures and of pages without text (OCR): start with ``pages``.

An engine (``engines``) finds lines in a picture (``images``), and ``layout`` puts them into reading order. The words
of a page (``words``) know their place, so that quotations are marked on the picture.
"""
