"""Text that the command line did not write can't drive the terminal."""

import ast
import io
import json
import re
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.table import Table
from rich.text import Text

import ragstack_local
from ragstack_common.registry.document_status import DocumentStatus
from ragstack_local.commands.reconcile import print_report
from ragstack_local.show import display, results
from ragstack_local.show.explanation import print_explanation
from tests.ragstack_local.retrieve_answers import RANKING, answer, part, result

ATTACK = "\x1b]0;owned\x07\x1b[2J\x1b[31mred\x9b1mbold\x7f\u202egpj.exe\udc9b"
HARMLESS = {"\n", "\t"}
BIDIRECTIONAL = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}

foreign = st.text(st.sampled_from("ab[/]\\ \x00\x07\x1b\x7f\x85\x9b\u2028\u202e\u2066\ud800\r\n\t") | st.characters())


def controls_in(text: str) -> list[str]:
    dangerous = {"Cc", "Cs", "Zl", "Zp"}
    return [
        character
        for character in text
        if character not in HARMLESS
        and (unicodedata.category(character) in dangerous or unicodedata.bidirectional(character) in BIDIRECTIONAL)
    ]


@given(foreign)
def test_a_console_prints_no_control_character(text: str) -> None:
    console = display.Console()
    console.file = io.StringIO()
    table = Table(title=text)
    table.add_column(text)
    table.add_row(text)

    console.print(text)
    console.print(Text(text), soft_wrap=True)
    console.print(Text.assemble(text, (text, "red")))
    console.print(table)

    assert controls_in(console.file.getvalue()) == []


@given(foreign)
def test_json_says_the_same_with_escapes(text: str) -> None:
    output = io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.stdout", output)
        display.print_json({"text": text, text: [1.5, None]})

    assert controls_in(output.getvalue()) == []
    assert json.loads(output.getvalue()) == {"text": text, text: [1.5, None]}


@pytest.mark.parametrize("markup", ["[bold red]x[/]", "[/]", "[link=http://x]y[/link]", ":smile:"])
def test_markup_in_a_text_is_not_read(capsys: pytest.CaptureFixture[str], markup: str) -> None:
    display.console.print(markup)
    with display.step(markup):
        pass

    assert capsys.readouterr().out.startswith(f"{markup}\n✓ {markup}")


def test_a_line_break_in_a_key_feigns_no_other_line(capsys: pytest.CaptureFixture[str]) -> None:
    display.print_unsearchable({"s3://b/a\nINDEXED s3://b/passwords.md": DocumentStatus("FAILED", "no\nOK")})

    assert [line for line in capsys.readouterr().out.splitlines() if not line.startswith("    ")] == ["FAILED s3://b/a"]


def test_all_output_of_foreign_text_is_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    signals = {ATTACK: 1.0}
    ranking = {**RANKING, "found_by": [ATTACK], "signals": signals, "contributions": signals, "reason": ATTACK}
    source = f"s3://b/{ATTACK}"
    hostile = answer(
        result(content=ATTACK, context=ATTACK, source=source, metadata={"topic": ATTACK}, ranking=ranking),
        complete=False,
        slices=[part(slice=ATTACK, status="failed", error=ATTACK)],
        corpora=[{"name": ATTACK, "candidates": 1, "results": 1}],
        notes=[{"kind": "reranker", "text": ATTACK}],
    )

    results.print_results(hostile, ATTACK)
    print_explanation(hostile["results"])
    display.print_unsearchable({ATTACK: DocumentStatus("FAILED", ATTACK)})
    display.print_table(ATTACK, [ATTACK, "n"], [[ATTACK, "1"]])
    print_report({ATTACK: ATTACK, "x": {"count": 1, "samples": [ATTACK]}})
    with display.progress() as bars:
        bars.add_task(ATTACK, total=1, detail=ATTACK)

    shown = capsys.readouterr().out
    assert r"\x1b[31mred" in shown
    assert controls_in(shown) == []


def test_no_output_bypasses_the_escapes() -> None:
    """Consoles read no markup, so a tag would be seen; and what is not printed by `display` has no escapes."""
    tag = re.compile(r"\[/?(bold|dim|italic|red|green|yellow|cyan|magenta|blue)\b[^\]]*\]|\[/\]")
    root = Path(ragstack_local.__file__).parent
    found = []
    for file in root.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and tag.search(node.value):
                found.append(f"{file.relative_to(root)}:{node.lineno}: {node.value}")
            if (
                isinstance(node, ast.Call)
                and ast.unparse(node.func) in ("typer.echo", "print")
                and file.name != "display.py"
                and "bedrock" not in file.parts
                and file.name != "cli.py"  # the version, and the names in the user's own .env
                and not re.search("export |unset ", ast.unparse(node))  # of `ragstack env`, quoted for a shell
            ):
                found.append(f"{file.relative_to(root)}:{node.lineno}: {ast.unparse(node)}")

    assert found == []
