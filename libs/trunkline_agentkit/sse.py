"""Server-sent events: bytes in, the data of whole events out. Pure.

After the HTML standard (server-sent events, interpreting an event stream): lines end with LF, CR or both, a blank one ends
the event, its `data` fields are joined by LF. Comments and the fields `id`, `event` and `retry` are left out.
"""

_MARK = b"\xef\xbb\xbf"


class EventSplitter:
    """Keeps the pieces of an unfinished line and joins them once, so that a long event costs linear time."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._data: list[bytes] = []
        self._after_return = False
        self._begun = False
        self.pending = 0
        """Bytes of the event that has not ended yet."""

    def feed(self, chunk: bytes) -> list[bytes]:
        """The data of the events that `chunk` completes. An event without data is none."""
        if self._after_return and chunk.startswith(b"\n"):
            chunk = chunk[1:]
            self._after_return = False
        if not chunk:
            return []
        self._after_return = chunk.endswith(b"\r")
        *ended, rest = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        found: list[bytes] = []
        for piece in ended:
            line = b"".join([*self._parts, piece]) if self._parts else piece
            self._parts.clear()
            self._line(line, found)
        if rest:
            self._parts.append(rest)
            self.pending += len(rest)
        return found

    def _line(self, line: bytes, found: list[bytes]) -> None:
        if not self._begun:
            self._begun = True
            line = line.removeprefix(_MARK)
        if not line:
            if self._data:
                found.append(b"\n".join(self._data))
                self._data.clear()
            self.pending = 0
            return
        field, _, value = line.partition(b":")
        if field == b"data":
            self._data.append(value.removeprefix(b" "))
            self.pending += len(value)
