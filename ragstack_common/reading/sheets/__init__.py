"""Reads workbooks: start with ``workbooks``; ``number_formats`` has the text that a sheet shows for a number."""
