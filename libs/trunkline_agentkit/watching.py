"""Directories that are watched for changes, by what the system tells of them. Who watches looks again from time to time all the same."""

import asyncio
import logging
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final, Self

from watchdog.events import (
    DirCreatedEvent,
    DirDeletedEvent,
    DirMovedEvent,
    FileCreatedEvent,
    FileDeletedEvent,
    FileModifiedEvent,
    FileMovedEvent,
    FileSystemEvent,
    FileSystemEventHandler,
)
from watchdog.observers import Observer

log = logging.getLogger(__name__)

MOST: Final = 1000
"""Directories that are watched at a time."""

# Not of reading: who looks at a file would be told of it.
_CHANGES: Final[list[type[FileSystemEvent]]] = [
    DirCreatedEvent,
    DirDeletedEvent,
    DirMovedEvent,
    FileCreatedEvent,
    FileDeletedEvent,
    FileModifiedEvent,
    FileMovedEvent,
]


class FileWatch(FileSystemEventHandler):
    """Sets `changed` whenever something in a directory that it follows has changed. Use as an async context manager."""

    def __init__(self) -> None:
        self.changed = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._observer = Observer()
        self._followed: dict[Path, Any] = {}
        self._refused = False

    async def __aenter__(self) -> Self:
        await asyncio.to_thread(self._observer.start)
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.to_thread(self._end)

    def follow(self, directories: Iterable[Path]) -> None:
        """From now on these, and no other. Blocking. One that can't be watched is left out: there may be too many."""
        wanted = set(sorted(directories)[:MOST])
        for gone in self._followed.keys() - wanted:
            self._observer.unschedule(self._followed.pop(gone))
        for new in sorted(wanted - self._followed.keys()):
            try:
                self._followed[new] = self._observer.schedule(self, str(new), event_filter=_CHANGES)
            except FileNotFoundError:
                continue
            except OSError as error:
                if not self._refused:
                    self._refused = True
                    log.warning("not_watched", extra={"directory": str(new), "error": str(error)})

    def on_any_event(self, event: FileSystemEvent) -> None:
        """In the watcher's own thread."""
        del event
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self.changed.set)

    def _end(self) -> None:
        self._observer.stop()
        self._observer.join()
