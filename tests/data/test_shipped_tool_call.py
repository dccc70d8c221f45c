"""The shipped conversations are what their script writes, and what their card says."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from xpe.text.tokenisers import language_of
from xpe.text.tools import tools_in

SHIPPED = Path(__file__).resolve().parents[2] / "xpe" / "data" / "shipped"
RECORDS = json.loads((SHIPPED / "tool_call.json").read_text(encoding="utf-8"))


def said(record, speaker):
    return [m["value"] for m in record["conversations"] if m["from"] == speaker]


def test_the_script_writes_the_file(tmp_path):
    """The same bytes, from the tools and talks beside it."""
    script = SHIPPED / "make" / "tool_call.py"
    subprocess.run([sys.executable, str(script), str(tmp_path)], check=True)

    assert (tmp_path / "tool_call.json").read_bytes() == (SHIPPED / "tool_call.json").read_bytes()


def test_the_card_counts_right():
    """Records, turns, answers and tools."""
    card = (SHIPPED / "tool_call.md").read_text(encoding="utf-8")
    searching = [sum("retrieval_tool" in v for v in said(r, "function_call")) for r in RECORDS]
    shown = [text for r in RECORDS for text in (r["tools"], *said(r, "observation"))]
    tools = {tool["name"] for text in shown for tool in tools_in(text)}

    assert f"- **Records**: {len(RECORDS)}, half" in card
    assert f": {sum(len(said(r, 'function_call')) for r in RECORDS)} turns of calls" in card
    assert f"- {sum(n > 0 for n in searching)} records find their tool first" in card
    assert sum(n == 2 for n in searching) == 4
    assert f"**Tools**: {len(tools)} in the union" in card


def test_half_is_chinese_and_no_question_comes_twice():
    """Twenty-two conversations of each language, each about something else."""
    spoken = [language_of("".join(said(record, "human"))) for record in RECORDS]
    asked = [text for record in RECORDS for text in said(record, "human")]

    assert spoken.count("zh") == spoken.count("en") == 22
    assert len(set(asked)) == len(asked)


def test_every_call_fits_its_tool():
    """The arguments of each call are those that its tool defines; the required ones are there."""
    for record in RECORDS:
        shown = [record["tools"], *said(record, "observation")]
        tools = {tool["name"]: tool["parameters"] for text in shown for tool in tools_in(text)}
        for text in said(record, "function_call"):
            value = json.loads(text)
            for call in value if isinstance(value, list) else [value]:
                schema = tools[call["name"]]
                assert call["arguments"].keys() <= schema["properties"].keys()
                assert set(schema["required"]) <= call["arguments"].keys()
