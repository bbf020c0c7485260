"""Agents that are a server over HTTP: `just matrix opencode-serve`."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import pytest
from tests.live.matrix.rows import CRASH, Row

from trunkline_agentkit.contract import More

pytestmark = [pytest.mark.live, pytest.mark.matrix, pytest.mark.timeout(400)]


class ServeRow(Row):
    adapter_name = "opencode"
    unknown: ClassVar[Mapping[str, Any]] = {"sse": "/event", "data": {"type": "thing.of.next.year", "properties": {}}}
    exempt: ClassVar[Mapping[Any, str]] = {
        "crash": CRASH,
        "plan": "its API has permissions and questions, and no plan that waits to be approved",
        "change": "a permission is answered with once, always or reject (POST /permission/{id}/reply)",
    }
    recovers: ClassVar[Sequence[More]] = ()


class TestOpencode(ServeRow):
    agent = profile = "opencode"
    row = "opencode-serve"


class TestKilo(ServeRow):
    agent = profile = "kilo"
