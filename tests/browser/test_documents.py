"""Documents in the console: uploaded, found in the list, followed, changed, deleted, and repaired by operators."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest
from playwright.sync_api import FilePayload, Locator, Page, Route, expect

from tests.browser.conftest import Open
from tests.browser.support import body_of, check_accessibility
from tests.e2e.support import LocalStack, client

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("console")]

FOLDER: Final = "samples/documents/people"
"""Where alice may write."""

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


def row(page: Page, name: str) -> Locator:
    return page.get_by_role("listitem").filter(has_text=name)


def uploaded(visit: Open, name: str, text: str, *, expects_failures: bool = False) -> Page:
    """Upload a document as alice, and open it."""
    page = visit("#/documents?tab=uploads", user="alice", expects_failures=expects_failures)
    upload(page, [text_file(name, text)])
    expect(row(page, name)).to_contain_text("Indexed")
    page.get_by_role("link", name=name).click()
    return page


def test_an_upload_is_followed_until_a_search_finds_it(visit: Open) -> None:
    page = uploaded(visit, "lighthouse.md", "# Lighthouse duty\n\nThe keeper of the lighthouse starts at dusk.")

    expect(page.get_by_text("A search found this document at rank 1")).to_be_visible()
    expect(page.get_by_role("region", name="Text that was read")).to_contain_text("starts at dusk")
    check_accessibility(page)


def test_an_unsupported_file_is_refused_with_the_reason(visit: Open) -> None:
    page = visit("#/documents?tab=uploads", user="alice")

    upload(page, [text_file("tool.exe", "x"), text_file("empty.md", "")])

    expect(row(page, "tool.exe")).to_contain_text("This type is not supported")
    expect(row(page, "empty.md")).to_contain_text("The file is empty")
    check_accessibility(page)


def test_uploads_offer_the_folders_and_labels_that_a_person_may_use(visit: Open) -> None:
    page = visit("#/documents?tab=uploads", user="alice")
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
    page.get_by_role("link", name=re.compile("^Uploads")).click()

    upload(page, [text_file("twice.md", "The second version of the twice told tale.")])
    again = page.get_by_role("listitem").filter(has_text="A document has this name.")
    expect(again).to_contain_text("Name is taken")
    check_accessibility(page)
    again.get_by_role("button", name="Keep both of twice.md").click()

    expect(row(page, "twice (2).md")).to_contain_text("Indexed")
    page.get_by_role("link", name="twice.md", exact=True).click()
    expect(page.get_by_role("region", name="Text that was read")).to_contain_text("The first version")


def test_a_document_that_appears_while_another_is_sent_is_not_replaced(visit: Open, stack: LocalStack) -> None:
    """The bucket itself refuses it, whatever the service saw before."""
    page = visit("#/documents?tab=uploads", user="alice", expects_failures=True)
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
    page = visit("#/documents?tab=uploads", user="alice")
    upload(page, [text_file(f"parallel-{number}.txt", f"Rule number {number} of the archive") for number in range(5)])

    page.get_by_role("link", name="Ask", exact=True).click()
    expect(page.get_by_role("textbox", name="Question")).to_be_visible()
    page.get_by_role("link", name="Documents", exact=True).click()
    page.get_by_role("link", name=re.compile("^Uploads")).click()

    expect(page.get_by_text("5 done", exact=True)).to_be_visible()


def test_a_folder_keeps_its_structure(visit: Open, tmp_path: Path) -> None:
    (tmp_path / "archive" / "deep").mkdir(parents=True)
    (tmp_path / "archive" / "deep" / "folded.md").write_text("Folded paper is kept in the archive.")
    page = visit("#/documents?tab=uploads", user="alice")

    page.get_by_role("combobox", name="Folder").select_option(f"{FOLDER}/")
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Choose a folder").click()
    chooser.value.set_files(tmp_path / "archive")

    expect(row(page, "folded.md")).to_contain_text(f"{FOLDER}/archive/deep/")
    expect(row(page, "folded.md")).to_contain_text("Indexed")


def test_a_dropped_file_is_uploaded(visit: Open) -> None:
    page = visit("#/documents?tab=uploads", user="alice")
    page.get_by_role("combobox", name="Folder").select_option(f"{FOLDER}/")
    page.get_by_role("link", name="Documents", exact=True).nth(1).click()
    expect(page.get_by_role("region", name="Documents")).to_be_visible()

    page.evaluate(DROP, ["dropped.md", "What was dropped is found again."])

    expect(row(page, "dropped.md")).to_contain_text("Indexed")


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
    page.get_by_role("button", name="Undo").click()
    page.goto(f"{page.url.split('#')[0]}#/documents?q=fleeting")
    expect(page.get_by_role("row").filter(has=name)).to_contain_text("Indexed")

    name.click()
    page.get_by_role("button", name="Delete").click()
    expect(page.get_by_role("row").filter(has=name)).to_contain_text("Will be deleted")
    expect(page.get_by_role("heading", name="No document matches")).to_be_visible()


def test_the_list_is_searched_and_read_by_keyboard(visit: Open) -> None:
    page = visit("#/documents", user="olga")
    page.get_by_role("searchbox").fill("LEAVE")
    expect(page).to_have_url(re.compile("q=LEAVE"))
    expect(page.get_by_role("link", name=re.compile("^leave-and-holidays"))).to_have_count(2)

    page.get_by_role("link", name="leave-and-holidays-2025.md").focus()
    page.keyboard.press("ArrowDown")
    expect(page.get_by_role("link", name="leave-and-holidays-2026.md")).to_be_focused()
    page.keyboard.press("Enter")

    expect(page.get_by_role("heading", name="leave-and-holidays-2026.md")).to_be_visible()
    page.go_back()
    page.get_by_role("searchbox").fill("no such name")
    expect(page.get_by_role("heading", name="No document matches")).to_be_visible()


def test_readers_get_no_controls_that_write(visit: Open) -> None:
    page = visit("#/documents?tab=failures", user="alice")

    expect(page.get_by_role("heading", name="You cannot open this")).to_be_visible()
    expect(page.get_by_role("link", name="Jobs")).to_have_count(0)


def test_operators_replay_failures_and_start_jobs(visit: Open) -> None:
    alice = visit("#/documents?tab=uploads", user="alice")
    upload(alice, [text_file("broken.pdf", "%PDF-1.4 is all there is")])
    expect(row(alice, "broken.pdf")).to_contain_text("Failed")
    expect(row(alice, "broken.pdf")).to_contain_text("damaged")

    page = visit("#/documents?tab=failures", user="olga")
    page.get_by_role("button", name="Replay broken.pdf").click()
    expect(page.get_by_text("1 document is processed again.").first).to_be_visible()
    page.get_by_role("link", name="Jobs").click()
    page.get_by_role("button", name="Start a reconciliation").click()

    expect(page.get_by_role("heading", name="The last reconciliation")).to_be_visible()
    check_accessibility(page)
