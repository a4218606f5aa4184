"""Reads workbooks: start with ``workbooks``; ``sheet`` writes them, and ``number_formats`` their numbers."""
