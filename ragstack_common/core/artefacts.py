"""Names of what is made of a document: its converted text, the words that were recognized in it, its attachments.

They lie next to the document in the bucket, and people are never shown the names of the first two::

    talks/plan.pptx
    talks/plan.pptx.ragstack.md        its text, which the knowledge base indexes
    talks/plan.pptx.ragstack.json      where recognized words are on its pages
    mails/offer.eml.ragstack/a.pdf     an attachment, which is a document
"""

from typing import Final

from ragstack_common.core.uris import SIDECAR_SUFFIX

MARK: Final = ".ragstack"
TEXT_SUFFIX: Final = f"{MARK}.md"
WORDS_SUFFIX: Final = f"{MARK}.json"

_MADE: Final = (TEXT_SUFFIX, WORDS_SUFFIX, TEXT_SUFFIX + SIDECAR_SUFFIX)


def text_of(name: str) -> str:
    """Return the key or URI of the converted text of a document."""
    return name + TEXT_SUFFIX


def document_of(name: str) -> str:
    """Return the key or URI of a document from that of its converted text; other names are returned unchanged."""
    return name.removesuffix(TEXT_SUFFIX)


def is_converted(name: str) -> bool:
    """Whether this is the key or URI of a converted text."""
    return name.endswith(TEXT_SUFFIX)


def maker_of(key: str) -> str | None:
    """Return the document of which an object was made that is no document itself; None for any other object."""
    suffix = next((each for each in _MADE if key.endswith(each)), None)
    return None if suffix is None else key.removesuffix(suffix) or None


def attachments_of(key: str) -> str:
    """Return what the keys of a mail's attachments begin with."""
    return f"{key}{MARK}/"


def mail_of(name: str) -> str | None:
    """Return the key or URI of the mail that a document is attached to; None if it is no attachment."""
    mail, slash, _ = name.rpartition(f"{MARK}/")
    return mail if slash and mail and not mail.endswith("/") else None


def mails_of(name: str) -> tuple[str, ...]:
    """Return the mail that a document is attached to, the mail that this one is attached to, and so on."""
    mail = mail_of(name)
    return () if mail is None else (mail, *mails_of(mail))


def is_reserved(key: str) -> bool:
    """Whether only RAGStack writes objects with such a key."""
    return maker_of(key) is not None or mail_of(key) is not None
