"""From a line of an agent's output to a `Native`: nothing an agent prints may stop the stream or vanish."""

from typing import Final

from trunkline_agentkit.framing import NOT_JSON, Decoded
from trunkline_agentkit.protocol import Fact, Native, Out, Translator
from trunkline_wire.work import NativeMessage

TRANSLATE_ERROR: Final = "translate_error"


def translate(translator: Translator, decoded: Decoded, kind: str) -> Native:
    """What a decoded line means. A translator that raises costs its translation, never the message."""
    if decoded.message is None:
        return untranslated(decoded.raw, kind, decoded.reason or NOT_JSON)
    try:
        out = translator.feed(decoded.message)
    except Exception as error:  # noqa: BLE001  # whatever an agent's new version does to a translator, the stream goes on
        return untranslated(decoded.raw, kind, f"{TRANSLATE_ERROR}: {type(error).__name__}")
    return Native(raw=decoded.raw, out=out, kind=kind)


def untranslated(raw: bytes, kind: str, reason: str) -> Native:
    """A native message that had no translation: protocol drift, kept and counted."""
    out: list[Out] = [Fact(data=NativeMessage(known=False, kind=kind, reason=reason))]
    return Native(raw=raw, out=out, kind=kind)
