"""What adapters are made of: protocols, process transport, translation, worker host."""

from trunkline_agentkit.exchange import Exchange, HttpResponse
from trunkline_agentkit.framing import Decoded, LineSplitter, decode_line, frame, kind_of
from trunkline_agentkit.lines import LineTransport, WebSocketLines, connect_websocket
from trunkline_agentkit.local import local_start
from trunkline_agentkit.manifest import Manifest, load_manifest
from trunkline_agentkit.peer import Peer, RequestRefusedError
from trunkline_agentkit.process import AgentProcess, Exit
from trunkline_agentkit.programs import find_program, program_output, program_version
from trunkline_agentkit.protocol import (
    Abandonable,
    Adopting,
    BackendAdapter,
    BackendSession,
    Configurable,
    ConfigurableBase,
    Context,
    Fact,
    Installed,
    Interruptible,
    ItemEnd,
    Launch,
    Native,
    OpenRecorder,
    Out,
    PermissionHandler,
    Piece,
    Progress,
    Start,
    Translator,
    UserPrompt,
    refuse_options,
    unsupported,
)
from trunkline_agentkit.registry import installed, load, load_all
from trunkline_agentkit.survivor import Survivor
from trunkline_agentkit.translation import translate, untranslated

__all__ = [
    "Abandonable",
    "Adopting",
    "AgentProcess",
    "BackendAdapter",
    "BackendSession",
    "Configurable",
    "ConfigurableBase",
    "Context",
    "Decoded",
    "Exchange",
    "Exit",
    "Fact",
    "HttpResponse",
    "Installed",
    "Interruptible",
    "ItemEnd",
    "Launch",
    "LineSplitter",
    "LineTransport",
    "Manifest",
    "Native",
    "OpenRecorder",
    "Out",
    "Peer",
    "PermissionHandler",
    "Piece",
    "Progress",
    "RequestRefusedError",
    "Start",
    "Survivor",
    "Translator",
    "UserPrompt",
    "WebSocketLines",
    "connect_websocket",
    "decode_line",
    "find_program",
    "frame",
    "installed",
    "kind_of",
    "load",
    "load_all",
    "load_manifest",
    "local_start",
    "program_output",
    "program_version",
    "refuse_options",
    "translate",
    "unsupported",
    "untranslated",
]
