"""The tables of docs/CONFIGURATION.md."""

from infra.configuration import PAGE, TABLES, updated


def test_the_tables_match_the_models() -> None:
    page = PAGE.read_text(encoding="utf-8")

    assert all(page.count(f"<!-- table: {title} -->") == 1 for title in TABLES)
    assert updated(page) == page, "run python -m infra.configuration"
