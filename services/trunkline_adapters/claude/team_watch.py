"""Looking at the files of teams: which there are, which have changed since, and what is new in them.

The CLI writes its files anew under a lock that nobody needs who only reads: one that is half written is no JSON, and is looked at again.
"""

import contextlib
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from trunkline_adapters.claude import team_files
from trunkline_agentkit.fields import as_obj, text
from trunkline_agentkit.framing import LineSplitter, decode_line
from trunkline_agentkit.team_files import Leads, Sight
from trunkline_wire import Data, TrunklineError, decode_json, parse_time
from trunkline_wire.codec import BROKEN
from trunkline_wire.ids import imported_event_id
from trunkline_wire.observed import ActivitySeen, TaskGone, TaskSeen, TeamGone, TeamSeen

MOST_TEAMS: Final = 100
MOST_FILES: Final = 1000
"""Of one kind in one team."""
LARGEST: Final = 8 * 1024 * 1024
"""Bytes of a file that is read whole, and of a transcript that are read at one look."""
AT_A_TIME: Final = 500
"""Sights of one look."""

_HEAD: Final = 64 * 1024
"""Bytes of a transcript in which its session has named itself."""
_SESSION: Final = re.compile(r"[A-Za-z0-9-]{1,64}")
_Signature = tuple[int, int, int]


class ClaudeTeamFiles:
    """`root` is the CLI's own directory. Whose teams are told of is decided anew until somebody's are."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._teams: dict[str, _Team] = {}

    @property
    def directories(self) -> Iterable[Path]:
        teams = self._root / "teams"
        yield teams if teams.is_dir() else self._root
        for team in self._teams.values():
            yield from (one for one in team.directories if one.is_dir())

    def look(self, leads: Leads) -> list[Sight]:
        found: list[Sight] = []
        there = self._names()
        for name in [name for name in self._teams if name not in there]:
            found += self._teams.pop(name).gone()
        for name in there:
            team = self._teams.get(name) or self._met(name, leads)
            if team is None:
                continue
            for sight in team.look():
                found.append(sight)
                if len(found) >= AT_A_TIME:
                    return found
        return found

    def _names(self) -> list[str]:
        """Of the teams there are, those first that are observed already, then the newest."""
        files = _listed(self._root / "teams", "*/config.json", MOST_FILES)
        age = {file.parent.name: -(_signature(file) or (0,))[0] for file in files}
        return sorted(age, key=lambda name: (name not in self._teams, age[name]))[:MOST_TEAMS]

    def _met(self, name: str, leads: Leads) -> "_Team | None":
        """A team that is new here, if it is to be told of."""
        file = self._root / "teams" / name / "config.json"
        config = as_obj(_json(file))
        if not config:
            return None
        lead = team_files.lead_of(config)
        session = leads(lead.native_session, lead.pid)
        if session is None:
            return None
        team = self._teams[name] = _Team(self._root, name, lead.native_session, session)
        return team


class _Team:
    """What was told of one team."""

    def __init__(self, root: Path, name: str, native: str | None, session: str) -> None:
        self._root = root
        self._name = name
        self._native = native
        self._session = session
        self._signatures: dict[Path, _Signature] = {}
        self._team: TeamSeen | None = None
        self._tasks: dict[str, TaskSeen] = {}
        self._mail: dict[str, set[str]] = {}
        """The messages that were told of, by inbox; those that have left it are forgotten."""
        self._transcripts: dict[Path, _Tail] = {}
        self._project: Path | None = None
        """The directory of the lead's session."""

    @property
    def directories(self) -> Iterable[Path]:
        yield self._folder
        yield self._folder / "inboxes"
        yield self._list
        if self._project is not None:
            yield self._subagents(self._project)

    @property
    def _folder(self) -> Path:
        return self._root / "teams" / self._name

    @property
    def _list(self) -> Path:
        return self._root / "tasks" / self._name

    def gone(self) -> Iterator[Sight]:
        """The team's directory was removed; the list of its tasks may stay."""
        yield self._sight(TeamGone(team=self._name), self._folder)
        yield from self._look_at_tasks()

    def look(self) -> Iterator[Sight]:
        """What is told of is what was taken up, so that whoever stops here goes on there."""
        yield from self._look_at_members()
        yield from self._look_at_tasks()
        yield from self._look_at_mail()
        yield from self._look_at_transcripts()

    def _look_at_members(self) -> Iterator[Sight]:
        file = self._folder / "config.json"
        config = as_obj(self._changed(file))
        if not config:
            return
        seen = team_files.team(self._name, config)
        if seen != self._team:
            self._team = seen
            yield self._sight(seen, file)

    def _look_at_tasks(self) -> Iterator[Sight]:
        files = _newest_tasks(self._list)
        for file in files:
            seen = team_files.task(self._name, as_obj(self._changed(file)))
            if seen is not None and seen != self._tasks.get(file.stem):
                self._tasks[file.stem] = seen
                yield self._sight(seen, file)
        there = {file.stem for file in files}
        for name in [name for name in self._tasks if name not in there]:
            gone, file = self._tasks.pop(name), self._list / f"{name}.json"
            self._signatures.pop(file, None)
            if not file.exists():
                yield self._sight(TaskGone(list=self._name, task=gone.task.id), file)

    def _look_at_mail(self) -> Iterator[Sight]:
        for file in _listed(self._folder / "inboxes", "*.json", MOST_FILES):
            inbox = self._changed(file)
            if inbox is None:
                continue
            letters = team_files.mail(self._name, file.stem, inbox)
            told = self._mail.setdefault(file.stem, set())
            told &= {letter.key for letter in letters}
            signature = self._signatures.pop(file)
            for letter in letters:
                if letter.key not in told:
                    told.add(letter.key)
                    id = _derived(self._name, file.stem, letter.key, letter.data.sent)
                    yield self._sight(letter.data, file, id=id)
            self._signatures[file] = signature

    def _look_at_transcripts(self) -> Iterator[Sight]:
        if self._project is None:
            self._project = self._find_project()
        if self._project is None:
            return
        for file in _listed(self._subagents(self._project), "agent-*.jsonl", MOST_FILES):
            if file not in self._transcripts:
                self._transcripts[file] = _Tail(file, file.stem.removeprefix("agent-"), _name_of(file))
        self._find_own(self._project)
        for file, tail in self._transcripts.items():
            seen = tail.grown()
            if seen is not None:
                yield self._sight(msgspec.structs.replace(seen, team=self._name), file)

    def _find_project(self) -> Path | None:
        if self._native is None or _SESSION.fullmatch(self._native) is None:
            return None
        return next((file.parent for file in _listed(self._root / "projects", f"*/{self._native}.jsonl", 1)), None)

    def _subagents(self, project: Path) -> Path:
        return project / (self._native or "") / "subagents"

    def _find_own(self, project: Path) -> None:
        """Transcripts of members with a process of their own say in their lines whose they are."""
        alone = {member.name: member.agent_id for member in self._team.members if member.pane} if self._team else {}
        if not alone:
            return
        for file in _listed(project, "*.jsonl", MOST_FILES):
            if file in self._transcripts or file.stem == self._native or self._signatures.get(file) == _signature(file):
                continue
            self._signatures[file] = _signature(file) or (0, 0, 0)
            name = _member_of(file, self._name)
            if name in alone:
                self._transcripts[file] = _Tail(file, alone[name] or name, name)

    def _changed(self, file: Path) -> Any:
        """What stands in a file, None where it is what it was, or can't be read now: then it is looked at again."""
        signature = _signature(file)
        if signature is None or signature == self._signatures.get(file):
            return None
        found = _json(file)
        if found is not None:
            self._signatures[file] = signature
        return found

    def _sight(self, data: Data, file: Path, *, id: str | None = None) -> Sight:
        path = str(file.relative_to(self._root))
        return Sight(data=data, native_session=self._native, session=self._session, path=path, id=id)


class _Tail:
    """A transcript, as far as it was read."""

    def __init__(self, file: Path, agent: str, name: str | None) -> None:
        self._file = file
        self._at = 0
        self._lines = LineSplitter()
        self._transcript = team_files.Transcript(agent, name)

    def grown(self) -> ActivitySeen | None:
        """What it tells, if it has grown by a message since."""
        before = self._transcript.seen
        try:
            if self._file.stat().st_size == self._at:
                return None
            with self._file.open("rb") as file:
                file.seek(self._at)
                data = file.read(LARGEST)
        except OSError:
            return None
        self._at += len(data)
        for line in self._lines.feed(data):
            with contextlib.suppress(RecursionError):
                self._transcript.feed(decode_line(line).message or {})
        seen = self._transcript.seen
        return None if seen == before else seen


def _name_of(transcript: Path) -> str | None:
    """The member's name, as the file beside its transcript says."""
    return text(as_obj(_json(transcript.with_suffix(".meta.json"))), "name")


def _member_of(transcript: Path, team: str) -> str | None:
    """Of which member of a team a session's transcript is, as its first lines say."""
    try:
        with transcript.open("rb") as file:
            head = file.read(_HEAD)
    except OSError:
        return None
    for line in LineSplitter().feed(head):
        with contextlib.suppress(RecursionError):
            message = decode_line(line).message or {}
            if text(message, "teamName") == team:
                return text(message, "agentName")
    return None


def _derived(team: str, to: str, key: str, sent: str | None) -> str:
    """The same message has the same id, whoever sees it, and however often."""
    try:
        millis = int(parse_time(sent or "").timestamp() * 1000)
    except (TrunklineError, ValueError, OverflowError):
        millis = 0
    return imported_event_id(team, f"{to}/{key}", millis)


def _listed(folder: Path, pattern: str, most: int | None) -> list[Path]:
    try:
        return sorted(folder.glob(pattern))[:most]
    except OSError:
        return []


def _newest_tasks(folder: Path) -> list[Path]:
    """In the order of their numbers."""
    files = _listed(folder, "*.json", None)
    return sorted(files, key=lambda file: (len(file.stem), file.stem))[-MOST_FILES:]


def _signature(file: Path) -> _Signature | None:
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def _json(file: Path) -> Any:
    """None for what can't be read, is too large or no JSON."""
    try:
        if file.stat().st_size > LARGEST:
            return None
        return decode_json(file.read_bytes())
    except (OSError, *BROKEN):
        return None
