"""The view `pages`: the stream sequence of every event of a session, so that any page of its history is quickly read."""

from collections.abc import Collection, Sequence
from typing import ClassVar, Final

from trunkline_bus import pages
from trunkline_bus.stored import Stored
from trunkline_bus.views import View
from trunkline_projector.sessions import session_of
from trunkline_wire import subjects

VERSION: Final = 1


class PagesView(View[pages.Index]):
    name: ClassVar[str] = "pages"
    bucket: ClassVar[str] = subjects.KV_PAGES
    version: ClassVar[int] = VERSION
    filters: ClassVar[Sequence[str]] = (subjects.ALL_EVENTS,)

    def key(self, stored: Stored) -> str | None:
        return session_of(stored)

    def sources(self, key: str) -> Sequence[str]:
        return (subjects.session_events(key),)

    def initial(self, key: str) -> pages.Index:
        del key
        return pages.Index()

    def fold(self, state: pages.Index, stored: Stored) -> pages.Index:
        return pages.index_event(state, stored)

    def encode(self, state: pages.Index) -> bytes:
        return pages.encode_index(state)

    def decode(self, raw: bytes) -> pages.Index:
        return pages.decode_index(raw)

    def attachments(self, state: pages.Index) -> Sequence[tuple[str, bytes]]:
        return pages.full_chunks(state)

    def without(self, state: pages.Index, names: Collection[str]) -> pages.Index:
        return pages.without_chunks(state, names)
