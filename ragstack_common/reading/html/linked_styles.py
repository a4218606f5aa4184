"""The styles that a page takes from other files of its archive or book."""

import re
from collections.abc import Callable
from html import unescape
from typing import Final

_LINK: Final = re.compile(r"<link\b[^>]*>", re.IGNORECASE)
_ATTRIBUTE: Final = re.compile(r"\b(rel|href|media)\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s>]+))", re.IGNORECASE)
_MAX_STYLES: Final = 4 << 20
"""Characters of styles of other files that are read for a page."""


def with_styles(page: str, style: Callable[[str], str | None]) -> str:
    """Return the source of a page in which the styles of other files are its own.

    Args:
        page: Its source.
        style: Returns the styles at an address; None if there are none.
    """
    left = _MAX_STYLES

    def inline(link: re.Match[str]) -> str:
        nonlocal left
        attributes = {
            found[1].lower(): unescape(found[2] or found[3] or found[4] or "") for found in _ATTRIBUTE.finditer(link[0])
        }
        if "stylesheet" not in attributes.get("rel", "").lower().split():
            return link[0]
        rules = style(attributes.get("href", "")) or ""
        left -= len(rules)
        if not rules or left < 0 or "</style" in rules.lower():
            return link[0]
        return f'<style media="{attributes.get("media", "")}">{rules}</style>'

    return _LINK.sub(inline, page)
