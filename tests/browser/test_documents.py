"""Documents in the console: uploaded, found in the list, followed, changed, deleted, and repaired by operators."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pytest
from playwright.sync_api import FilePayload, Locator, Page, Route, expect

from ragstack_common.core.uris import s3_uri
from ragstack_common.registry.table import document_id
from tests.browser.conftest import Open
from tests.browser.support import body_of, check_accessibility, check_readable, pictures, show
from tests.e2e.support import LocalStack, client
from tests.support.office_files import docx, p
from tests.support.pdf_files import pages, text

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("console")]

FOLDER: Final = "samples/documents/people"
"""Where alice may write."""

PICTURE: Final = b"q 555 0 0 800 20 30 cm BI /W 2 /H 2 /CS /G /BPC 8 ID \x20\x80\xc0\xf0 EI Q\n"
"""The content of a page that is a picture."""

DROP: Final = """([name, text]) => {
  const dropped = new DataTransfer();
  dropped.items.add(new File([text], name));
  const page = document.querySelector(".documents-page");
  page.dispatchEvent(new DragEvent("drop", { bubbles: true, cancelable: true, dataTransfer: dropped }));
}"""


@pytest.fixture(autouse=True)
def without_earlier_tries(stack: LocalStack, handbook: Path) -> None:
    """Delete what a try before this one uploaded: the console does not replace it without asking."""
    s3, bucket = client(stack.connection, "s3"), stack.connection.bucket
    samples = {f"samples/documents/{file.relative_to(handbook).as_posix()}" for file in handbook.rglob("*.*")}
    found = s3.list_objects_v2(Bucket=bucket, Prefix=f"{FOLDER}/").get("Contents", [])
    for key in {each["Key"] for each in found}:
        if key.removesuffix(".metadata.json") not in samples:
            s3.delete_object(Bucket=bucket, Key=key)


def text_file(name: str, text: str) -> FilePayload:
    return {"name": name, "mimeType": "text/plain", "buffer": text.encode()}


def choose(page: Page, files: Sequence[FilePayload]) -> None:
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Choose files").click()
    chooser.value.set_files(files)


def upload(page: Page, files: Sequence[FilePayload]) -> None:
    """Choose files for the folder of people."""
    page.get_by_role("combobox", name="Folder").select_option(f"{FOLDER}/")
    choose(page, files)


def uploads(visit: Open, user: str, **options: Any) -> Page:
    """Sign in, and open the sheet."""
    page = visit("#/documents", user=user, **options)
    page.get_by_role("link", name="Upload", exact=True).click()
    return page


def sheet(page: Page) -> Locator:
    return page.get_by_role("dialog", name="Upload documents")


def row(page: Page, name: str) -> Locator:
    """An upload in the sheet."""
    return sheet(page).get_by_role("listitem").filter(has_text=name)


def close(page: Page) -> None:
    sheet(page).get_by_role("button", name="Close").click()


def uploaded(visit: Open, name: str, text: str, *, expects_failures: bool = False) -> Page:
    """Upload a document as alice, and open it."""
    page = uploads(visit, user="alice", expects_failures=expects_failures)
    upload(page, [text_file(name, text)])
    expect(row(page, name)).to_contain_text("Indexed")
    sheet(page).get_by_role("link", name=name).click()
    return page


def test_an_upload_is_followed_until_a_search_finds_it(visit: Open) -> None:
    page = uploaded(visit, "lighthouse.md", "# Lighthouse duty\n\nThe keeper of the lighthouse starts at dusk.")

    expect(page.get_by_text("A search found this document at rank 1")).to_be_visible()
    expect(page.get_by_role("region", name="Text that was read")).to_contain_text("starts at dusk")
    check_accessibility(page)


def manual() -> bytes:
    """A PDF of 24 pages; of two, nothing can be read, and of another only what a scanner wrote on it."""

    def chapter(number: int) -> bytes:
        rules = [b"(Rule %d: the keeper of tower %d cleans its lamp.)" % (each, number) for each in range(1, 13)]
        lines = [(720 - 20 * each, 11, rule) for each, rule in enumerate(rules)]
        return text((760, 20, b"(The lamps of tower %d)" % number), *lines)

    scanned = {7: PICTURE, 12: PICTURE, 18: PICTURE + text((15, 9, b"(Scanned at the harbour office)"))}
    return pages(*(scanned.get(number) or chapter(number) for number in range(1, 25)))


def test_a_receipt_names_what_was_not_read_and_leads_to_it(visit: Open, tmp_path: Path) -> None:
    page = uploads(visit, user="alice", viewport={"width": 1280, "height": 860})
    upload(page, [{"name": "lamp-manual.pdf", "mimeType": "application/pdf", "buffer": manual()}])
    expect(row(page, "lamp-manual.pdf")).to_contain_text("Partly indexed")
    expect(row(page, "lamp-manual.pdf")).to_contain_text("page 7")
    sheet(page).get_by_role("link", name="lamp-manual.pdf").click()
    receipt = page.get_by_role("region", name="What was read")

    missing = [re.compile("^Not read.*page 7, page 12: "), re.compile("^Partly read.*page 18: ")]
    expect(receipt.locator(".not-read li")).to_have_text(missing)
    strip = receipt.get_by_role("list", name="Pages")
    expect(strip.get_by_role("listitem").first).to_have_text("Pages 1 to 6: read")
    expect(receipt.get_by_role("row").filter(has_text="Pages")).to_contain_text("88 %")
    expect(page.get_by_text("“What was read” has the details")).to_be_visible()
    for scheme in ("dark", "light"):
        page.emulate_media(color_scheme=scheme)
        check_accessibility(page)
        receipt.screenshot(path=pictures(tmp_path) / f"receipt-{scheme}.png", animations="disabled")

    original = page.get_by_role("region", name="Original and text")
    receipt.get_by_role("button", name="page 12", exact=True).press("Enter")
    expect(original).to_be_focused()
    expect(original).to_be_in_viewport()
    expect(original.get_by_role("img", name="Page 12;")).to_be_visible()
    strip.get_by_role("button", name="Page 18: partly read").click()
    expect(original.get_by_role("img", name="Page 18;")).to_be_visible()
    page.set_viewport_size({"width": 320, "height": 640})
    check_readable(page)
    check_accessibility(page)


def test_the_list_says_what_searches_do_not_find(visit: Open) -> None:
    page = uploads(visit, user="alice")
    upload(
        page,
        [
            {
                "name": "lamp-scan.pdf",
                "mimeType": "application/pdf",
                "buffer": pages(text((700, 12, b"(Lamps)")), PICTURE),
            }
        ],
    )
    expect(row(page, "lamp-scan.pdf")).to_contain_text("Partly indexed")

    page.evaluate("location.hash = '#/documents?q=lamp-scan'")

    found = page.get_by_role("row").filter(has=page.get_by_role("link", name="lamp-scan.pdf"))
    for width in (1280, 800, 320):
        page.set_viewport_size({"width": width, "height": 640})
        expect(found.get_by_text("Partly indexed").locator("visible=true")).to_have_count(1)
        expect(found.get_by_text("page 2 (")).to_be_visible()
        check_readable(page)
        check_accessibility(page)


def test_a_receipt_counts_what_is_left_out_on_purpose(visit: Open) -> None:
    comment = f'<w:comment w:id="0">{p("Is this still so?")}</w:comment>'
    word = docx(p("The keeper lights the lamp of the north tower at dusk."), {"c": ("comments", comment)})
    page = uploads(visit, user="alice")
    upload(page, [{"name": "lamp-duty.docx", "mimeType": "application/octet-stream", "buffer": word}])
    expect(row(page, "lamp-duty.docx")).to_contain_text("Indexed")

    sheet(page).get_by_role("link", name="lamp-duty.docx").click()

    receipt = page.get_by_role("region", name="What was read")
    expect(receipt).to_contain_text("Everything that the file shows is in the index.")
    cells = receipt.get_by_role("row").filter(has_text="Comments").get_by_role("cell")
    expect(cells).to_have_text(["1", "left out"])
    check_accessibility(page)


def test_an_unsupported_file_is_refused_with_the_reason(visit: Open) -> None:
    page = uploads(visit, user="alice")

    upload(page, [text_file("tool.exe", "x"), text_file("empty.md", "")])

    expect(row(page, "tool.exe")).to_contain_text("This type is not supported")
    expect(row(page, "empty.md")).to_contain_text("The file is empty")
    check_accessibility(page)


def test_uploads_offer_the_folders_and_labels_that_a_person_may_use(visit: Open) -> None:
    page = uploads(visit, user="alice")
    folders = page.get_by_role("combobox", name="Folder")

    assert f"{FOLDER}/" in folders.get_by_role("option").all_inner_texts()
    folders.select_option(f"{FOLDER}/")
    labels = page.get_by_role("combobox", name="Who sees it")
    assert labels.get_by_role("option").all_inner_texts() == ["people (default)", "handbook"]
    labels.select_option("handbook")
    page.get_by_role("textbox", name="Folder in it").fill("open")
    with page.expect_request(lambda request: request.method == "POST" and request.url.endswith("/documents")) as sent:
        choose(page, [text_file("for-everyone.md", "Everybody may read how the canteen is reached.")])

    asked = body_of(sent.value)
    assert (asked["key"], asked["attributes"]) == (f"{FOLDER}/open/for-everyone.md", {"access": "handbook"})
    expect(row(page, "for-everyone.md")).to_contain_text("Indexed")
    check_accessibility(page)


def test_an_upload_replaces_a_document_only_if_people_choose_it(visit: Open) -> None:
    page = uploaded(visit, "twice.md", "The first version of the twice told tale.", expects_failures=True)
    page.evaluate("location.hash = '#/documents?tab=uploads'")

    upload(page, [text_file("twice.md", "The second version of the twice told tale.")])
    again = row(page, "A document has this name.")
    expect(again).to_contain_text("Name is taken")
    check_accessibility(page)
    again.get_by_role("button", name="Keep both: twice.md").click()

    expect(row(page, "twice (2).md")).to_contain_text("Indexed")
    sheet(page).get_by_role("link", name="twice.md", exact=True).click()
    expect(page.get_by_role("region", name="Text that was read")).to_contain_text("The first version")


def test_a_document_that_appears_while_another_is_sent_is_not_replaced(visit: Open, stack: LocalStack) -> None:
    """The bucket itself refuses it, whatever the service saw before."""
    page = uploads(visit, user="alice", expects_failures=True)
    s3 = client(stack.connection, "s3")

    def be_faster(route: Route) -> None:
        s3.put_object(Bucket=stack.connection.bucket, Key=f"{FOLDER}/raced.md", Body=b"It was here before.")
        route.continue_()

    page.route(lambda url: "raced.md" in url and "X-Amz-Signature" in url, be_faster)
    upload(page, [text_file("raced.md", "It came later.")])

    expect(row(page, "raced.md")).to_contain_text("Name is taken")
    body = s3.get_object(Bucket=stack.connection.bucket, Key=f"{FOLDER}/raced.md")["Body"].read()
    assert body == b"It was here before."


def test_an_upload_goes_on_while_another_page_is_open(visit: Open) -> None:
    page = uploads(visit, user="alice")
    upload(page, [text_file(f"parallel-{number}.txt", f"Rule number {number} of the archive") for number in range(5)])

    close(page)
    page.get_by_role("link", name="Ask", exact=True).click()
    expect(page.get_by_role("textbox", name="Question")).to_be_visible()
    page.get_by_role("link", name="Documents", exact=True).click()
    page.get_by_role("link", name="Upload", exact=True).click()

    expect(page.get_by_text("5 done", exact=True)).to_be_visible()


def test_a_folder_keeps_its_structure(visit: Open, tmp_path: Path) -> None:
    (tmp_path / "archive" / "deep").mkdir(parents=True)
    (tmp_path / "archive" / "deep" / "folded.md").write_text("Folded paper is kept in the archive.")
    page = uploads(visit, user="alice")

    page.get_by_role("combobox", name="Folder").select_option(f"{FOLDER}/")
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Choose a folder").click()
    chooser.value.set_files(tmp_path / "archive")

    expect(row(page, "folded.md")).to_contain_text(f"{FOLDER}/archive/deep/")
    expect(row(page, "folded.md")).to_contain_text("Indexed")


def test_dropped_files_wait_until_people_have_seen_where_they_go(visit: Open) -> None:
    page = visit("#/documents", user="alice")
    expect(page.get_by_role("region", name="Documents")).to_be_visible()

    page.evaluate(DROP, ["dropped.md", "What was dropped is found again."])
    sheet(page).get_by_role("combobox", name="Folder").select_option(f"{FOLDER}/")
    seen = "Seen by the group “people”, and by others who may see the label “people”."
    expect(sheet(page)).to_contain_text(seen)
    check_accessibility(page)
    sheet(page).get_by_role("button", name=f"Upload 1 file to {FOLDER}/").click()

    expect(row(page, "dropped.md")).to_contain_text("Indexed")


def test_the_list_of_uploads_outlives_a_reload_with_failures_first(visit: Open) -> None:
    page = uploads(visit, user="alice")
    upload(page, [text_file("kept.md", "The lamp is kept."), text_file("empty.md", "")])
    expect(row(page, "kept.md")).to_contain_text("Indexed")

    page.reload()

    lines = [re.compile(text) for text in ("^Cannot succeed as they are$", "empty.md", "^Done$", "kept.md")]
    expect(sheet(page).get_by_role("listitem")).to_have_text(lines)
    expect(sheet(page).get_by_role("button", name="Try again: empty.md")).to_have_count(0)
    for width in (1440, 768, 320):
        page.set_viewport_size({"width": width, "height": 700})
        check_readable(page)
    check_accessibility(page)


def test_attributes_are_changed_in_place(visit: Open) -> None:
    page = uploaded(visit, "attributes.md", "The colour of the door is green.")
    page.get_by_role("button", name="Edit").click()
    page.get_by_role("button", name="Add an attribute").click()
    page.get_by_role("textbox", name="Name").last.fill("year")

    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("alert")).to_have_text("Give it a value, or remove it.")
    check_accessibility(page)
    page.get_by_role("textbox", name="Value of year").fill("2031")
    labels = page.get_by_role("combobox", name="Who sees it")
    assert labels.get_by_role("option").all_inner_texts() == ["people (default)", "handbook"]
    labels.select_option("handbook")
    with page.expect_request(lambda request: request.method == "PATCH") as sent:
        page.get_by_role("button", name="Save").click()

    assert sent.value.post_data_json == {"attributes": {"access": "handbook", "year": 2031}}
    expect(page.get_by_role("definition").filter(has_text="2031")).to_be_visible()
    expect(page.get_by_text("Saved.")).to_have_count(0)
    page.reload()
    expect(page.get_by_role("definition").filter(has_text="2031")).to_be_visible()


def test_a_deletion_can_be_undone_until_it_is_carried_out(visit: Open) -> None:
    page = uploaded(visit, "fleeting.md", "This note does not stay for long.")
    expect(page.get_by_role("heading", name="fleeting.md")).to_be_visible()
    name = page.get_by_role("link", name="fleeting.md")

    page.get_by_role("button", name="Delete").click()
    expect(page.get_by_role("button", name="Undo")).to_be_visible()
    page.keyboard.press("Control+z")
    expect(page.get_by_role("button", name="Undo")).to_have_count(0)
    assert page.evaluate("document.activeElement !== document.body")
    page.goto(f"{page.url.split('#')[0]}#/documents?q=fleeting")
    expect(page.get_by_role("row").filter(has=name)).to_be_visible()
    expect(page.get_by_text("Will be deleted")).to_have_count(0)

    name.click()
    page.clock.install()
    page.get_by_role("button", name="Delete").click()
    expect(page.get_by_role("row").filter(has=name)).to_contain_text("Will be deleted")
    page.clock.fast_forward(10_000)
    expect(page.get_by_role("heading", name="No document matches")).to_be_visible()


def test_the_list_is_searched_and_read_by_keyboard(visit: Open) -> None:
    page = visit("#/documents", user="olga")
    page.get_by_role("searchbox", name="Search by name or folder").fill("LEAVE")
    expect(page).to_have_url(re.compile("q=LEAVE"))
    expect(page.get_by_role("link", name=re.compile("^leave-and-holidays"))).to_have_count(2)

    page.get_by_role("link", name="leave-and-holidays-2025.md").focus()
    page.keyboard.press("ArrowDown")
    expect(page.get_by_role("link", name="leave-and-holidays-2026.md")).to_be_focused()
    page.keyboard.press("Enter")

    expect(page.get_by_role("heading", name="leave-and-holidays-2026.md")).to_be_visible()
    page.go_back()
    page.get_by_role("searchbox", name="Search by name or folder").fill("no such name")
    expect(page.get_by_role("heading", name="No document matches")).to_be_visible()


def test_space_shows_a_preview_and_gives_the_focus_back(visit: Open) -> None:
    page = visit("#/documents?q=leave-and", user="olga")
    link = page.get_by_role("link", name="leave-and-holidays-2026.md")
    link.focus()

    page.keyboard.press("Space")

    preview = page.get_by_role("dialog", name="leave-and-holidays-2026.md")
    expect(preview.get_by_role("heading", level=3).first).to_be_visible()
    check_accessibility(page)
    page.keyboard.press("Escape")
    expect(link).to_be_focused()


def test_several_documents_are_deleted_and_undone_at_once(visit: Open) -> None:
    page = visit("#/documents?q=leave-and", user="olga")
    page.get_by_role("link", name="leave-and-holidays-2025.md").focus()
    page.keyboard.press("x")
    page.get_by_role("checkbox", name="Select leave-and-holidays-2026.md").check()
    bar = page.get_by_role("region", name="Selection")
    expect(bar).to_contain_text("2 selected")
    for width in (1440, 768, 390, 320):
        page.set_viewport_size({"width": width, "height": 800})
        check_readable(page)
        check_accessibility(page)

    bar.get_by_role("button", name="Delete").click()
    page.clock.install()
    page.get_by_role("dialog", name="Delete 2 documents?").get_by_role("button", name="Delete").click()

    expect(page.get_by_text("2 documents will be deleted.")).to_be_visible()
    expect(page.get_by_text("Will be deleted", exact=True)).to_have_count(2)
    assert page.evaluate("document.activeElement.closest('.documents') !== null")
    page.get_by_role("checkbox", name="Select all that are loaded").check()
    expect(page.get_by_role("region", name="Selection")).to_have_count(0)  # nothing is deleted twice
    page.get_by_role("button", name="Undo").focus()
    page.clock.fast_forward(60_000)
    page.get_by_role("button", name="Undo").press("Enter")
    expect(page.get_by_text("Will be deleted", exact=True)).to_have_count(0)
    page.wait_for_function("() => document.activeElement.closest('.documents') !== null")


def test_an_attribute_of_several_documents_is_set(visit: Open) -> None:
    page = uploads(visit, user="alice")
    upload(page, [text_file(f"several-{number}.md", f"The lamp number {number}.") for number in (1, 2)])
    for number in (1, 2):
        expect(row(page, f"several-{number}.md")).to_contain_text("Indexed")
    page.evaluate("location.hash = '#/documents?q=several-'")
    page.get_by_role("checkbox", name="Select all that are loaded").check()
    page.get_by_role("button", name="Set attribute").click()
    page.get_by_role("combobox", name="Attribute").fill("tower")
    page.get_by_role("textbox", name="Value").fill("north")
    check_accessibility(page)

    page.get_by_role("button", name="Set", exact=True).click()

    expect(page.get_by_role("region", name="Selection")).to_have_count(0)
    # Another one, before the list knows the first.
    page.get_by_role("checkbox", name="Select all that are loaded").check()
    page.get_by_role("button", name="Set attribute").click()
    page.get_by_role("combobox", name="Attribute").fill("floor")
    page.get_by_role("textbox", name="Value").fill("twelfth")
    page.get_by_role("button", name="Set", exact=True).click()
    expect(page.get_by_role("region", name="Selection")).to_have_count(0)
    page.get_by_role("link", name="several-2.md").click()
    expect(page.get_by_role("definition").filter(has_text="twelfth")).to_be_visible()
    expect(page.get_by_role("definition").filter(has_text="north")).to_be_visible()


def test_the_list_is_sorted_and_opened_folder_by_folder(visit: Open) -> None:
    page = visit("#/documents", user="olga")
    names = page.locator(".documents tbody a")
    expect(page.get_by_role("columnheader", name="Folder")).to_have_attribute("aria-sort", "ascending")
    size = page.get_by_role("columnheader", name="Size")
    size.get_by_role("button").press("Enter")
    expect(names.first).to_have_text(re.compile(r"\.(docx|pdf)$"))
    expect(page).to_have_url(re.compile("sort=-size"))
    expect(size).to_have_attribute("aria-sort", "descending")
    expect(size.get_by_role("button")).to_be_focused()
    size.get_by_role("button").press("Enter")
    expect(size).to_have_attribute("aria-sort", "ascending")
    check_accessibility(page)
    page.set_viewport_size({"width": 390, "height": 800})
    page.get_by_role("combobox", name="Sort").select_option("Largest first")
    expect(page).to_have_url(re.compile("sort=-size"))
    check_readable(page)

    page.get_by_role("link", name=re.compile("^samples")).click()
    page.get_by_role("link", name=re.compile("^documents")).click()
    page.get_by_role("link", name=re.compile("^people")).click()
    expect(page.get_by_role("navigation", name="Folders").locator("[aria-current]")).to_have_text("people")
    expect(page.get_by_role("link", name="leave-and-holidays-2026.md")).to_be_visible()
    page.go_back()
    expect(page.get_by_role("navigation", name="Folders").locator("[aria-current]")).to_have_text("documents")


def test_a_missing_document_is_found_by_words_even_before_its_matches_are_there(visit: Open) -> None:
    page = visit("#/documents", user="olga")
    box = page.get_by_role("combobox", name="Find a document")

    box.fill("holidays 2026")
    option = page.get_by_role("option", name=re.compile("leave-and-holidays-2026.md"))
    expect(option.locator("mark").first).to_be_visible()
    check_accessibility(page)
    box.fill("no such words")
    expect(page.locator("p").filter(has_text="No document that you may see has these words.")).to_be_visible()
    box.fill("holidays-2026.md")
    box.press("Enter")

    expect(page.get_by_role("heading", name="leave-and-holidays-2026.md")).to_be_focused()


def test_readers_get_no_controls_that_write(visit: Open) -> None:
    page = visit("#/documents?tab=failures", user="alice")

    expect(page.get_by_role("heading", name="You cannot open this")).to_be_visible()
    expect(page.get_by_role("link", name="Jobs")).to_have_count(0)


def failed(number: int, reason: str, *, can_replay: bool, messages: Sequence[str] = ()) -> dict[str, Any]:
    """A document that failed, as the service lists it."""
    return {
        "id": f"{number:032x}",
        "uri": f"s3://documents/lamps/lamp-{number}.pdf",
        "status": "FAILED",
        "reasons": [reason],
        "attempts": 1,
        "since": "2026-03-01T08:00:00Z",
        "message_ids": [*messages],
        "advice": "The cause may be temporary: replay" if can_replay else "Fix the file and upload it again",
        "can_replay": can_replay,
    }


def test_what_can_succeed_is_tried_again_after_a_confirmation_with_the_count(visit: Open) -> None:
    busy = [failed(number, "The service was unavailable", can_replay=True) for number in range(12)]
    locked = [failed(number, "It has a password", can_replay=False, messages=["m"]) for number in (20, 21)]
    answers = [[*busy, *locked], locked]

    def listed(route: Route) -> None:
        documents = answers[0] if len(answers) == 1 else answers.pop(0)
        route.fulfill(json={"documents": documents, "unreadable": [], "complete": True, "next_token": None})

    def replayed(route: Route) -> None:
        named = body_of(route.request)["documents"]
        sent = [{"id": uri, "uri": uri, "updated_at": None} for uri in named]
        route.fulfill(json={"documents": sent, "deleted": 0, "unreadable": 0, "shared": 0, "next_token": None})

    page = visit("#/documents", user="olga")
    page.route("**/api/failures", listed)
    page.route("**/api/failures/replay", replayed)
    page.get_by_role("link", name="Needs your decision").click()
    possible = page.get_by_role("region", name="Can succeed as they are (12)")
    hopeless = page.get_by_role("region", name="Need something else first (2)")
    expect(page.get_by_text("It has a password.")).to_have_count(1)
    expect(hopeless.get_by_role("button", name="Try again")).to_have_count(0)
    expect(hopeless.get_by_role("button", name="Discard the requests about lamp-20.pdf")).to_be_visible()
    for width in (1440, 768, 320):
        page.set_viewport_size({"width": width, "height": 800})
        check_readable(page)
        check_accessibility(page)
    possible.get_by_role("button", name="Show 4 more").press("Enter")
    expect(possible.get_by_role("link", name="lamp-8.pdf")).to_be_focused()

    possible.get_by_role("button", name="Try all 12 again").press("Enter")
    check_accessibility(page)
    with page.expect_request("**/api/failures/replay") as sent:
        page.get_by_role("dialog", name="Try 12 documents again?").get_by_role("button", name="Try again").click()

    assert len(body_of(sent.value)["documents"]) == 12
    expect(page.locator("p.box", has_text="12 documents are processed again.")).to_be_visible()
    expect(possible).to_have_count(0)
    expect(page.get_by_role("heading", name="Needs your decision")).to_be_focused()


def test_a_failed_document_says_why_once_and_gives_its_file(visit: Open) -> None:
    alice = uploads(visit, user="alice")
    upload(alice, [text_file("broken.pdf", "%PDF-1.4 is all there is")])
    expect(row(alice, "broken.pdf")).to_contain_text("Failed")
    expect(row(alice, "broken.pdf")).to_contain_text("damaged")

    page = visit("#/documents?tab=failures", user="olga")
    hopeless = page.get_by_role("region", name=re.compile("Need something else first"))
    card = hopeless.get_by_role("listitem").filter(has_text="broken.pdf").first
    expect(card).to_contain_text("damaged")
    expect(card.get_by_role("button", name="Try again")).to_have_count(0)
    card.get_by_role("link", name="broken.pdf").click()
    expect(page.get_by_text("Searches do not find this document.")).to_be_visible()
    expect(page.get_by_text("damaged")).to_have_count(1)
    expect(page.get_by_role("button", name="Try again")).to_have_count(0)
    with page.expect_download() as saved:
        page.get_by_role("button", name="Download broken.pdf").click()
    assert saved.value.suggested_filename == "broken.pdf"
    assert saved.value.path().read_text() == "%PDF-1.4 is all there is"

    page.evaluate("location.hash = '#/documents?q=broken.pdf'")
    page.get_by_role("link", name="broken.pdf").focus()
    page.keyboard.press("Space")
    preview = page.get_by_role("dialog", name="broken.pdf")
    expect(preview.get_by_text("damaged")).to_have_count(1)
    expect(preview.get_by_role("button", name="Try again")).to_have_count(0)
    check_accessibility(page)


def test_a_file_is_downloaded_under_its_own_name_in_every_script(visit: Open) -> None:
    page = uploaded(visit, "契約 «Übersicht».md", "The contract of the lamp.")

    with page.expect_download() as saved:
        page.get_by_role("button", name="Download").click()

    assert saved.value.suggested_filename == "契約 «Übersicht».md"
    assert saved.value.path().read_text() == "The contract of the lamp."
    expect(page.get_by_role("button", name="Download")).to_be_focused()


def test_operators_start_jobs(visit: Open) -> None:
    page = visit("#/documents?tab=jobs", user="olga")
    page.get_by_role("button", name="Start a reconciliation").click()

    expect(page.get_by_role("heading", name="The last reconciliation")).to_be_visible()
    expect(page.get_by_text(re.compile(r"^\d+ documents compared, "))).to_be_visible()
    page.get_by_text("All figures").first.click()
    check_accessibility(page)


def test_what_one_may_not_see_looks_like_what_is_not_there(visit: Open, stack: LocalStack) -> None:
    hidden = s3_uri(stack.connection.bucket, "samples/documents/people/leave-and-holidays-2026.md")
    page = visit(f"#/documents/{document_id(hidden)}", user="bob", expects_failures=True)
    expect(page.get_by_role("heading", name="This document is not here")).to_be_visible()
    seen = page.locator("main").inner_text()

    show(page, f"#/documents/{'0' * 32}")

    expect(page.get_by_role("heading", name="This document is not here")).to_be_visible()
    assert page.locator("main").inner_text() == seen
    check_readable(page)
    check_accessibility(page)


def test_an_unknown_part_of_the_page_is_the_list(visit: Open) -> None:
    page = visit("#/documents?tab=nothing", user="bob")

    expect(page.get_by_role("region", name="Documents")).to_be_visible()


def test_documents_speak_german(visit: Open) -> None:
    page = visit("#/documents", user="olga")
    page.evaluate("localStorage.setItem('ragstack.language', 'de')")
    page.reload()
    page.get_by_role("link", name="Zu entscheiden").click()
    expect(page.get_by_role("heading", name="Zu entscheiden", exact=True)).to_be_visible()
    page.get_by_role("link", name="Läufe").click()
    expect(page.get_by_role("button", name="Abgleich starten")).to_be_visible()
    page.get_by_role("link", name="Dokumente", exact=True).first.click()
    page.get_by_role("link", name="leave-and-holidays-2026.md").click()
    expect(page.get_by_role("heading", name="Attribute")).to_be_visible()
    expect(page.get_by_role("heading", name="Was gelesen wurde")).to_be_visible()
    for width in (1440, 768, 320):
        page.set_viewport_size({"width": width, "height": 800})
        check_readable(page)
