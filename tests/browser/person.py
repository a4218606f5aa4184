"""A person who does a task with the mouse or by keyboard alone: what they click and press, and how long it takes them.

The time is that of the keystroke-level model. Source: Card, Moran, Newell (1980), "The Keystroke-Level Model for User
Performance Time with Interactive Systems".
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, Literal

from playwright.sync_api import Error, Locator, Page, expect

KEY_SECONDS: Final = 0.28
"""For an average non-secretary typist, and for a press of the mouse's button."""

POINT_SECONDS: Final = 1.1
HOME_SECONDS: Final = 0.4
"""To move the hand between the mouse and the keyboard."""

THINK_SECONDS: Final = 1.35
"""Before each click, each text and each walk through the page."""

MAX_TABS: Final = 90

HAS_VISIBLE_FOCUS: Final = """() => {
    const focused = document.activeElement;
    if (!focused || focused === document.body) return false;
    for (let box = focused, depth = 0; box && depth < 4; box = box.parentElement, depth++) {
        const {outlineStyle, outlineWidth, boxShadow} = getComputedStyle(box);
        if (outlineStyle !== 'none' && parseFloat(outlineWidth) > 0) return true;
        if (box.matches(':focus-within') && boxShadow !== 'none') return true;
    }
    if (focused.matches('textarea, input:not([type])')) return true; // a caret blinks in it
    return focused.matches('[tabindex="-1"]'); // moved there by the page, to be read
}"""
"""Whether people see where they are: a ring around what has the focus, or around the box that it is in."""

Hands = Literal["mouse", "keyboard"]


@dataclass
class Person:
    """Somebody in front of a page.

    Attributes:
        clicks: How often they pressed the mouse's button.
        keys: How many keys they pressed; Ctrl-K is two.
        system_seconds: How long they waited for the page.
        own_seconds: How long they think, point and type, by the model.
    """

    page: Page
    hands: Hands
    clicks: int = 0
    keys: int = 0
    system_seconds: float = 0.0
    own_seconds: float = 0.0
    _at: str = "keyboard"

    @contextmanager
    def waits(self) -> Iterator[None]:
        """Count what happens meanwhile as waiting."""
        started = time.perf_counter()
        yield
        self.system_seconds += time.perf_counter() - started

    def sees(self, locator: Locator) -> None:
        """Wait until something is there."""
        with self.waits():
            expect(locator.first).to_be_visible()

    def choose(self, locator: Locator, key: str = "Enter") -> None:
        """Click, or go there and press a key."""
        self.sees(locator)
        if self.hands == "mouse":
            self._click(locator)
        else:
            self.go_to(locator)
            self.press(key)

    def go_to(self, locator: Locator) -> None:
        """Press Tab until it has the focus, or Shift-Tab if it comes before."""
        self._think("keyboard")
        is_before = locator.first.evaluate(
            "each => !!(each.compareDocumentPosition(document.activeElement) & Node.DOCUMENT_POSITION_FOLLOWING)"
        )
        for _ in range(MAX_TABS):
            if self._is_focused(locator):
                return
            self.press("Shift+Tab" if is_before else "Tab")
        raise AssertionError(f"{locator} is more than {MAX_TABS} presses of Tab away")

    def write(self, locator: Locator, text: str) -> None:
        """Type into a field, instead of what is in it."""
        self.sees(locator)
        if not self._is_focused(locator):
            self.choose(locator) if self.hands == "mouse" else self.go_to(locator)
        self._think("keyboard")
        if locator.input_value():
            self.press("Control+a")
        self.page.keyboard.type(text)
        self._count(len(text))
        self._check_focus()

    def select(self, locator: Locator, option: str) -> None:
        """Choose an option of a list by the beginning of its text."""
        self.sees(locator)
        if self.hands == "mouse":
            self._click(locator, does=False)
            self._click(locator, does=False)
            locator.select_option(option)
        else:
            self.go_to(locator)
            self.page.keyboard.type(option)
            self._count(len(option))
        expect(locator).to_have_value(option)

    def press(self, *keys: str) -> None:
        """Press keys; the page is at rest after each."""
        for key in keys:
            self.page.keyboard.press(key)
            self._count(len(key.split("+")))
            self._check_focus()

    def _is_focused(self, locator: Locator) -> bool:
        return bool(locator.first.evaluate("each => each === document.activeElement"))

    def _click(self, locator: Locator, *, does: bool = True) -> None:
        self._think("mouse")
        self.own_seconds += POINT_SECONDS + KEY_SECONDS
        self.clicks += 1
        if does:
            locator.first.click()

    def _count(self, keys: int) -> None:
        self.keys += keys
        self.own_seconds += keys * KEY_SECONDS

    def _think(self, at: str) -> None:
        self.own_seconds += THINK_SECONDS + (HOME_SECONDS if at != self._at else 0)
        self._at = at

    def _check_focus(self) -> None:
        """Who has no mouse sees where they are, at each step."""
        if self.hands == "keyboard":
            try:
                with self.waits():
                    self.page.wait_for_function(HAS_VISIBLE_FOCUS, timeout=10_000)
            except Error as error:
                focused = self.page.evaluate("document.activeElement?.outerHTML.slice(0, 300)")
                raise AssertionError(f"Nobody sees where the focus is: {focused}") from error
