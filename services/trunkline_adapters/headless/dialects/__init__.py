"""The dialects by name, as profiles name them."""

from collections.abc import Mapping, Sequence
from typing import Final

from trunkline_adapters.headless.dialects import cline, gemini, reply, stream_json
from trunkline_adapters.headless.native import Dialect

DIALECTS: Final[Mapping[str, Dialect]] = {
    "cline": cline.read,
    "gemini": gemini.read,
    "reply": reply.read,
    "stream-json": stream_json.read,
}

RECOGNISED: Final[Sequence[Dialect]] = (gemini.read, cline.read, stream_json.read)
"""Those that know no more than their own kinds of message, so that a first message tells them apart."""
