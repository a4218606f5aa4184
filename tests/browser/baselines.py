"""Pictures of the console that are compared with those that were accepted before."""

import os
from io import BytesIO
from pathlib import Path
from typing import Final

from PIL import Image, ImageChops
from playwright.sync_api import Locator, Page

from tests.browser.support import IS_AT_REST
from tests.e2e.support import ROOT

ACCEPTED: Final = Path(__file__).with_name("baselines")
FAILED: Final = ROOT / "build" / "baselines"

RENEW: Final = "RAGSTACK_BASELINES=1"

MAX_LEVELS: Final = 3
"""Two pixels are equal if no channel differs by more, of 255: less than people see."""

MAX_SHARE: Final = 0.0002
"""So many pixels may differ, as the edges of letters do with another version of Chromium; 230 of 1440 x 800."""

STEADY: Final = """() => {
    for (const each of document.querySelectorAll('time')) each.textContent = '2 Jan 2026';
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
        const text = node.data
            .replace(/\\b[\\d.]+\\s(ms|s)\\b/g, '1 $1')
            .replace(/\\d+ (sec|min|hr|days?)\\.? ago|\\d+:\\d\\d(:\\d\\d)?\\s[AP]M/g, 'just now')
            .replace(/(^|updated )now\\b/, '$1just now')
            .replace(/[A-Z][a-z]{2} \\d+, \\d{4}(, \\d+:\\d\\d\\s[AP]M)?/g, '2 Jan 2026')
            .replace(/in \\d+ folders/, 'in 2 folders')
            .replace(/localhost:\\d+/g, 'localhost');
        if (text !== node.data) node.data = text;
    }
}"""
"""Gives each time, duration and port the same text."""


def check_looks(name: str, page: Page, part: Locator | None = None) -> None:
    """Compare the page, or a part of it, with its accepted pictures, light and dark.

    Raises:
        AssertionError: It looks otherwise; both pictures and what differs are in ``build/baselines``.
    """
    changed = []
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        page.evaluate("document.fonts.ready.then(() => null)")
        page.wait_for_function(IS_AT_REST)
        page.evaluate(STEADY)
        taken = (part or page).screenshot(animations="disabled")
        picture = Image.open(BytesIO(taken)).convert("RGB")
        accepted = ACCEPTED / f"{name}-{scheme}.webp"
        if os.environ.get("RAGSTACK_BASELINES"):
            ACCEPTED.mkdir(exist_ok=True)
            picture.save(accepted, lossless=True, method=6)  # exact, and a third of a PNG
        elif difference := _difference(picture, accepted):
            FAILED.mkdir(parents=True, exist_ok=True)
            picture.save(FAILED / f"{name}-{scheme}-actual.png")
            difference.save(FAILED / f"{name}-{scheme}-difference.png")
            changed.append(f"{name}-{scheme}")
    assert changed == [], (
        f"look otherwise, see {FAILED}: {changed}. If they should: {RENEW} make browser ARGS='-k looks'"
    )


def _difference(picture: Image.Image, accepted: Path) -> Image.Image | None:
    """Return what differs in white; None if it is not more than the tolerance."""
    if not accepted.exists():
        return Image.new("L", picture.size, 255)
    before = Image.open(accepted).convert("RGB")
    if before.size != picture.size:
        return Image.new("L", picture.size, 255)
    channels = ImageChops.difference(before, picture).split()
    largest = ImageChops.lighter(ImageChops.lighter(channels[0], channels[1]), channels[2])
    mask = largest.point(lambda level: 255 if level > MAX_LEVELS else 0)
    differing = mask.histogram()[255]
    return mask if differing > MAX_SHARE * picture.width * picture.height else None
