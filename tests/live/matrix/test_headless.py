"""Agents that print JSON lines, one process a turn: `just matrix gemini-headless`."""

from collections.abc import Mapping
from typing import Any, ClassVar

import pytest
from tests.live.matrix.rows import CRASH, Row

pytestmark = [pytest.mark.live, pytest.mark.matrix, pytest.mark.timeout(400)]

NO_ASK = "its process has no way to ask: the mode says what it may do"


class HeadlessRow(Row):
    adapter_name = "headless"
    exempt: ClassVar[Mapping[Any, str]] = {
        "crash": CRASH,
        "ask": NO_ASK,
        "question": NO_ASK,
        "change": NO_ASK,
        "plan": NO_ASK,
        "second": "its process takes one prompt: the next one waits in Trunkline for the end of the turn",
        "stays": "its process is one turn's",
    }


class TestGemini(HeadlessRow):
    agent = profile = "gemini"
    row = "gemini-headless"
    mode = "yolo"


class TestQwen(HeadlessRow):
    agent = profile = "qwen"
    row = "qwen-headless"
    mode = "yolo"


class TestCline(HeadlessRow):
    agent = profile = "cline"
    row = "cline"
    mode = "act"
    exempt: ClassVar[Mapping[Any, str]] = {
        **HeadlessRow.exempt,
        "resume": "`--id` goes with its terminal interface alone",
    }


class TestContinue(HeadlessRow):
    agent = profile = "continue"
    row = "continue"
    mode = "auto"
    exempt: ClassVar[Mapping[Any, str]] = {
        **HeadlessRow.exempt,
        "resume": "it takes up only the last session of all",
        "streaming": "it prints nothing but its whole answer",
        "tool": "it tells of no tool",
        "messages": "its output is its answer, whatever it is, and no message of any type",
    }
