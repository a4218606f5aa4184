"""Each word that a file shows is in the index or named in the receipt; each hidden one is left out and counted."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from tests.ragstack_common.reading.census import plain_files
from tests.ragstack_common.reading.census.binary_sheet_files import binary_workbooks
from tests.ragstack_common.reading.census.book_files import books, web_archives
from tests.ragstack_common.reading.census.doc_files import old_documents
from tests.ragstack_common.reading.census.mail_files import mails, outlook_mails
from tests.ragstack_common.reading.census.marked import SOME, MarkedFile, check_damage, check_receipt
from tests.ragstack_common.reading.census.markup_files import org_files, restructured_texts
from tests.ragstack_common.reading.census.open_files import open_presentations, open_spreadsheets, open_texts
from tests.ragstack_common.reading.census.page_files import markdown_files, text_files, web_pages
from tests.ragstack_common.reading.census.paged_files import paged_files
from tests.ragstack_common.reading.census.rtf_files import rtf_files
from tests.ragstack_common.reading.census.sheet_files import old_workbooks, workbooks
from tests.ragstack_common.reading.census.slide_files import old_presentations, presentations
from tests.ragstack_common.reading.census.word_files import word_files

ANY_PRESENTATION = st.one_of(presentations(), old_presentations(), open_presentations())
ANY_WORKBOOK = st.one_of(workbooks(), binary_workbooks(), old_workbooks(), open_spreadsheets())


@SOME
@given(word_files())
def test_a_receipt_has_each_word_of_a_word_document(file: MarkedFile) -> None:
    check_receipt(file)


@SOME
@given(word_files(), st.randoms(use_true_random=False))
def test_a_receipt_misses_what_an_index_lacks_of_a_word_document(file: MarkedFile, random: Random) -> None:
    check_damage(file, random)


@SOME
@given(open_texts())
def test_a_receipt_has_each_word_of_an_open_document(file: MarkedFile) -> None:
    check_receipt(file)


@SOME
@given(open_texts(), st.randoms(use_true_random=False))
def test_a_receipt_misses_what_an_index_lacks_of_an_open_document(file: MarkedFile, random: Random) -> None:
    check_damage(file, random)


@SOME
@given(ANY_WORKBOOK)
def test_a_receipt_has_each_cell_of_a_workbook(file: MarkedFile) -> None:
    check_receipt(file)


@SOME
@given(ANY_WORKBOOK, st.randoms(use_true_random=False))
def test_a_receipt_misses_what_an_index_lacks_of_a_workbook(file: MarkedFile, random: Random) -> None:
    check_damage(file, random)


@SOME
@given(web_pages())
def test_a_receipt_has_each_word_of_a_web_page(file: MarkedFile) -> None:
    check_receipt(file)


@SOME
@given(web_pages(), st.randoms(use_true_random=False))
def test_a_receipt_misses_what_an_index_lacks_of_a_web_page(file: MarkedFile, random: Random) -> None:
    check_damage(file, random)


@SOME
@given(st.one_of(markdown_files(), text_files()))
def test_a_receipt_has_each_word_of_a_text_file(file: MarkedFile) -> None:
    check_receipt(file)


@SOME
@given(st.one_of(markdown_files(), text_files()), st.randoms(use_true_random=False))
def test_a_receipt_misses_what_an_index_lacks_of_a_text_file(file: MarkedFile, random: Random) -> None:
    check_damage(file, random)


@SOME
@given(paged_files())
def test_a_receipt_has_each_word_of_a_pdf(file: MarkedFile) -> None:
    check_receipt(file)


@SOME
@given(paged_files(), st.randoms(use_true_random=False))
def test_a_receipt_misses_what_an_index_lacks_of_a_pdf(file: MarkedFile, random: Random) -> None:
    check_damage(file, random)


@SOME
@given(ANY_PRESENTATION)
def test_a_receipt_has_each_word_of_a_presentation(file: MarkedFile) -> None:
    check_receipt(file)


@SOME
@given(ANY_PRESENTATION, st.randoms(use_true_random=False))
def test_a_receipt_misses_what_an_index_lacks_of_a_presentation(file: MarkedFile, random: Random) -> None:
    check_damage(file, random)


@SOME
@given(st.one_of(mails(), outlook_mails()))
def test_a_receipt_has_each_word_of_a_mail(file: MarkedFile) -> None:
    check_receipt(file)


@SOME
@given(st.one_of(mails(), outlook_mails()), st.randoms(use_true_random=False))
def test_a_receipt_misses_what_an_index_lacks_of_a_mail(file: MarkedFile, random: Random) -> None:
    check_damage(file, random)


@SOME
@given(rtf_files())
def test_a_receipt_has_each_word_of_a_rich_text(file: MarkedFile) -> None:
    check_receipt(file)


@SOME
@given(rtf_files(), st.randoms(use_true_random=False))
def test_a_receipt_misses_what_an_index_lacks_of_a_rich_text(file: MarkedFile, random: Random) -> None:
    check_damage(file, random)


@SOME
@given(st.one_of(books(), web_archives()))
def test_a_receipt_has_each_word_of_a_book_or_web_archive(file: MarkedFile) -> None:
    check_receipt(file)


@SOME
@given(st.one_of(books(), web_archives()), st.randoms(use_true_random=False))
def test_a_receipt_misses_what_an_index_lacks_of_a_book_or_web_archive(file: MarkedFile, random: Random) -> None:
    check_damage(file, random)


_PLAIN_FILES = st.one_of(
    plain_files.json_files(),
    plain_files.notebooks(),
    plain_files.xml_files(),
    plain_files.tab_separated_files(),
    plain_files.subtitles(),
)


@SOME
@given(_PLAIN_FILES)
def test_a_receipt_has_each_word_of_data_notebooks_and_subtitles(file: MarkedFile) -> None:
    check_receipt(file)


@SOME
@given(_PLAIN_FILES, st.randoms(use_true_random=False))
def test_a_receipt_misses_what_an_index_lacks_of_data_notebooks_and_subtitles(file: MarkedFile, random: Random) -> None:
    check_damage(file, random)


@SOME
@given(st.one_of(restructured_texts(), org_files()))
def test_a_receipt_has_each_word_of_light_markup(file: MarkedFile) -> None:
    check_receipt(file)


@SOME
@given(st.one_of(restructured_texts(), org_files()), st.randoms(use_true_random=False))
def test_a_receipt_misses_what_an_index_lacks_of_light_markup(file: MarkedFile, random: Random) -> None:
    check_damage(file, random)


@SOME
@given(old_documents())
def test_a_receipt_has_each_word_of_an_old_document(file: MarkedFile) -> None:
    check_receipt(file)


@SOME
@given(old_documents(), st.randoms(use_true_random=False))
def test_a_receipt_misses_what_an_index_lacks_of_an_old_document(file: MarkedFile, random: Random) -> None:
    check_damage(file, random)
