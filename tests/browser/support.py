"""What the tests of the console share: signing in, what a page must not do, and axe."""

import json
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Self

from playwright.sync_api import ConsoleMessage, Locator, Page, Request, expect

from tests.e2e.support import ROOT

AXE: Final = ROOT / "web" / "node_modules" / "axe-core" / "axe.min.js"

RULES: Final = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]

WAIT_MILLISECONDS: Final = 120_000
"""For each wait: on a busy machine, a function that was never called takes its time to start."""


@dataclass
class Visit:
    """A page, and what it did that no page may do.

    Attributes:
        page: What is watched.
        allowed: The beginnings of the addresses that it may ask.
        expects_failures: Whether requests may fail, which browsers write to their console.
        asks: Whether it asked a question, of which the service keeps a conversation.
        complaints: Messages in the browser's console, errors, and requests to other servers.
    """

    page: Page
    allowed: Sequence[str]
    expects_failures: bool = False
    asks: bool = False
    complaints: list[str] = field(default_factory=list)

    @classmethod
    def watched(cls, page: Page, allowed: Sequence[str], *, expects_failures: bool = False) -> Self:
        """Watch a page from now on."""
        visit = cls(page, allowed, expects_failures)
        page.on("console", visit._note_message)
        page.on("pageerror", lambda error: visit.complaints.append(f"error: {error}"))
        page.on("request", visit._note_request)
        return visit

    def _note_message(self, message: ConsoleMessage) -> None:
        if self.expects_failures and message.text.startswith("Failed to load resource"):
            return
        self.complaints.append(f"{message.type}: {message.text} ({message.location.get('url')})")

    def _note_request(self, request: Request) -> None:
        self.asks |= "/api/ask" in request.url
        if not request.url.startswith((*self.allowed, "data:", "blob:")):
            self.complaints.append(f"request: {request.url}")


def body_of(request: Request) -> dict[str, Any]:
    """Return the JSON object that the console sent."""
    body = request.post_data_json
    assert isinstance(body, dict)
    return body


signed_in: Final[set[str]] = set()
"""Who has signed in since the last test ended."""


def sign_in(page: Page, user: str) -> None:
    """Sign in on the issuer's own page, and wait until the console knows the user."""
    page.get_by_role("button", name=re.compile("^(Sign in|Anmelden)$")).click()
    page.get_by_role("button", name=user, exact=True).click()
    is_signed_in(page, user)


def is_signed_in(page: Page, user: str) -> None:
    """Wait until the console knows the user."""
    signed_in.add(user)
    expect(account(page)).to_have_accessible_name(re.compile(rf": {user}\b"))


class Sessions:
    """The tokens of those who signed in, which the console keeps in each tab."""

    def __init__(self) -> None:
        self._tokens: dict[str, dict[str, str]] = {}

    def note(self, page: Page, user: str) -> None:
        """Remember the tokens of who has just signed in."""
        self._tokens[user] = page.evaluate(
            "Object.fromEntries(Object.entries(sessionStorage).filter(([name]) => name.startsWith('oidc.user:')))"
        )

    def resume(self, page: Page, user: str) -> bool:
        """Give the tokens of a user to a new tab, if there are any. They are not given again to who signs out."""
        if user not in self._tokens:
            return False
        page.add_init_script(f"""if (!sessionStorage.getItem("resumed"))
            Object.assign(sessionStorage, {json.dumps(self._tokens[user])}, {{resumed: "yes"}});""")
        return True


def account(page: Page) -> Locator:
    """The button with the name of who is signed in, which opens what they may do and how they sign out."""
    return page.get_by_role("button", name=re.compile("^(Account|Konto): "))


def pictures(otherwise: Path) -> Path:
    """Return the folder for pictures of pages: that of the documentation with RAGSTACK_PICTURES=1."""
    return ROOT / "docs" / "images" if os.environ.get("RAGSTACK_PICTURES") else otherwise


def show(page: Page, address: str) -> None:
    """Go to an address of the console that is open."""
    page.evaluate("address => { location.hash = address; }", address)


def is_loaded(page: Page) -> None:
    """Wait until nothing loads any more."""
    expect(page.locator(".loading, .skeleton, .spinner, [aria-busy=true]")).to_have_count(0)
    page.wait_for_load_state("networkidle")


IS_AT_REST: Final = """() => document.getAnimations().every(
    each => each.playState !== 'running' || each.effect.getComputedTiming().iterations === Infinity
)"""
"""Whether nothing moves into its place; what turns while something loads does so for ever."""

UNREADABLE: Final = """() => {
    const width = document.documentElement.clientWidth;
    const found = [];
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
        const element = node.parentElement;
        if (!node.data.trim() || element.closest('.skip, svg, option')) continue;
        if (!element.checkVisibility({visibilityProperty: true})) continue;
        let hidden = element;
        while (hidden && getComputedStyle(hidden).clipPath !== 'inset(50%)') hidden = hidden.parentElement;
        if (hidden) continue; // for screen readers alone
        const range = document.createRange();
        range.selectNodeContents(node);
        for (const rect of range.getClientRects()) {
            let [left, right] = [rect.left, rect.right];
            for (let box = element; box !== document.body; box = box.parentElement) {
                const style = getComputedStyle(box);
                if (style.overflowX === 'visible') continue;
                const outer = box.getBoundingClientRect();
                if (['auto', 'scroll'].includes(style.overflowX) && !box.matches('nav')) {
                    [left, right] = [outer.left, outer.right];
                    break;
                }
                [left, right] = [Math.max(left, outer.left), Math.min(right, outer.right)];
            }
            const isOut = left < -1 || right > width + 1;
            if (rect.width > 12 && (isOut || right - left < Math.min(rect.width - 1, 96)))
                found.push(`${node.data.trim().slice(0, 30)}: ${right - left} of ${rect.width} px`);
        }
    }
    return [...new Set(found)];
}"""
"""The texts that are outside of the window, or of which boxes around them show less than 96 pixels."""


UNREADABLE_CELLS: Final = """() => {
    const found = [];
    const scrolled = [...document.querySelectorAll('*')]
        .filter(each => each.scrollHeight > each.clientHeight || each.scrollWidth > each.clientWidth)
        .map(each => [each, each.scrollLeft, each.scrollTop]);
    const shown = [...document.querySelectorAll('dialog:modal')].at(-1) ?? document;
    for (const cell of shown.querySelectorAll('td, th, [role=cell], [role=gridcell], [role=columnheader]')) {
        if (!cell.checkVisibility({visibilityProperty: true}) || !cell.innerText.trim()) continue;
        cell.scrollIntoView({block: 'center', inline: 'center', behavior: 'instant'});
        const walker = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
        for (let node = walker.nextNode(); node; node = walker.nextNode()) {
            const element = node.parentElement;
            if (!node.data.trim() || element.closest('svg, option') || !element.checkVisibility()) continue;
            let hidden = element;
            while (hidden && getComputedStyle(hidden).clipPath !== 'inset(50%)') hidden = hidden.parentElement;
            if (hidden) continue; // for screen readers alone
            const range = document.createRange();
            range.selectNodeContents(node);
            const rect = [...range.getClientRects()].find(each => each.width > 2);
            if (!rect) continue;
            let [left, right] = [Math.max(rect.left, 0), Math.min(rect.right, document.documentElement.clientWidth)];
            for (let box = element; box !== document.body; box = box.parentElement) {
                if (getComputedStyle(box).overflowX === 'visible') continue;
                const outer = box.getBoundingClientRect();
                [left, right] = [Math.max(left, outer.left), Math.min(right, outer.right)];
            }
            const text = node.data.trim().slice(0, 30);
            if (right - left < Math.min(rect.width - 1, 96))
                found.push(`${text}: ${Math.round(right - left)} of ${Math.round(rect.width)} px`);
            const over = document.elementFromPoint((left + right) / 2, (rect.top + rect.bottom) / 2);
            if (over && !cell.contains(over) && !over.contains(cell) && !over.closest('tr')?.contains(cell))
                found.push(`${text}: behind ${over.outerHTML.slice(0, 60)}`);
            for (const word of node.data.matchAll(/(?<!\\S)\\S{2,12}(?!\\S)/g)) {
                range.setStart(node, word.index);
                range.setEnd(node, word.index + word[0].length);
                const tops = new Set([...range.getClientRects()].map(each => Math.round(each.top)));
                if (tops.size > 1) found.push(`${word[0]}: broken into ${tops.size} lines`);
            }
        }
    }
    for (const [each, left, top] of scrolled) each.scrollTo({left, top, behavior: 'instant'});
    return [...new Set(found)];
}"""
"""The texts in cells of tables that are cut, covered, or broken within a short word, after scrolling to the cell."""

WIDTHS: Final = (320, 390, 768, 1024, 1440)
"""The widths at which everything can be read, in pixels."""

PHONE_PIXELS: Final = 390
LAPTOP_PIXELS: Final = 1440


def at_every_width(page: Page, height: int = 800) -> Iterator[int]:
    """Give the page each width in turn."""
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": height})
        yield width


def check_readable(page: Page) -> None:
    """Check that every text can be read without scrolling sideways; regions that scroll themselves may be wider.

    Every cell of every table can be read, too, after scrolling to it.
    """
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth"), page.url
    page.wait_for_function(IS_AT_REST)
    unreadable = page.evaluate(UNREADABLE)
    assert unreadable == [], f"{page.url}: {unreadable}"
    unreadable = page.evaluate(UNREADABLE_CELLS)
    assert unreadable == [], f"{page.url}: {unreadable}"


def check_accessibility(page: Page) -> None:
    """Check a page as it is now with axe, and its contrast in the other colours too.

    The script is evaluated by the browser's debugger, which the page's policy does not concern.
    """
    if not page.evaluate("() => 'axe' in window"):
        page.evaluate(AXE.read_text())
    findings = _violations(page, RULES)
    is_dark = page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
    page.emulate_media(color_scheme="light" if is_dark else "dark")
    findings += _violations(page, {"type": "rule", "values": ["color-contrast"]})
    page.emulate_media(color_scheme="dark" if is_dark else "light")
    assert findings == [], "\n".join(findings)


def _violations(page: Page, rules: object) -> list[str]:
    """What axe finds. To return also what it does not object to would take four times as long (570 ms, not 130)."""
    page.wait_for_function(IS_AT_REST)
    found = page.evaluate(
        "async rules => (await axe.run({runOnly: rules, resultTypes: ['violations']})).violations", rules
    )
    return [
        f"{violation['id']}: {node['html']} {node['failureSummary']}"
        for violation in found
        for node in violation["nodes"]
    ]
