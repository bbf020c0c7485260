"""The policy in force: read from a file, read again when the file changes, each version recorded in the audit."""

import logging
from pathlib import Path

from trunkline_bus import direct
from trunkline_bus.connection import Bus
from trunkline_fold.policy import Policy, parse_policy
from trunkline_wire import SystemRecord, TrunklineError, decode_json, encode, subjects, timestamp
from trunkline_wire.ids import new_event_id

log = logging.getLogger(__name__)

KIND = "policy"


class PolicyFile:
    """`policy` is the last version that could be read; `problem` says what is wrong with the file, None if nothing.

    A missing file is the default policy: agents are kept off Trunkline itself, people decide the rest.
    """

    def __init__(self, path: Path, state_dir: Path, user_home: Path) -> None:
        self.path = path
        self.state_dir = str(state_dir)
        self.user_home = str(user_home)
        self._seen: tuple[int, int] | None = (0, 0)
        self.text = ""
        self.problem: str | None = None
        self.policy: Policy = parse_policy("", state_dir=self.state_dir)

    def refresh(self) -> bool:
        """Look at the file; True if another policy is in force now. A file with a mistake changes nothing."""
        stamp = self._stamp()
        if stamp == self._seen:
            return False
        self._seen = stamp
        try:
            text = "" if stamp is None else self.path.read_text(encoding="utf-8")
            policy = parse_policy(text, state_dir=self.state_dir)
        except (OSError, UnicodeDecodeError, TrunklineError) as error:
            self.problem = f"{str(self.path)!r} is not used: {error}; the policy before it stays in force"
            log.error("policy_refused", extra={"path": str(self.path), "error": str(error)})  # noqa: TRY400 - the text says it all
            return False
        self.problem = None
        changed = policy.version != self.policy.version
        self.policy, self.text = policy, text
        if changed:
            log.info(
                "policy_loaded", extra={"path": str(self.path), "version": policy.version, "rules": len(policy.rules)}
            )
        return changed

    def _stamp(self) -> tuple[int, int] | None:
        try:
            stat = self.path.stat()
        except OSError:
            return None
        return (stat.st_mtime_ns, stat.st_size)


async def record_policy(bus: Bus, source: PolicyFile) -> None:
    """Append the version in force to the audit, unless it is the last one there.

    With it goes what its reading depends on: the file, the state directory that its first rules protect, and what `~`
    stands for in it.
    """
    subject = subjects.system(KIND)
    there = await direct.last(bus, subjects.SYSTEM, subject)
    if there is not None and decode_json(there.raw).get("details", {}).get("version") == source.policy.version:
        return
    record = SystemRecord(
        id=new_event_id(),
        kind=KIND,
        time=timestamp(),
        actor="permissions",
        details={
            "version": source.policy.version,
            "text": source.text,
            "path": str(source.path),
            "state_dir": source.state_dir,
            "user_home": source.user_home,
        },
    )
    # Replicas read the same file at the same time: of records behind the same one the server keeps the first.
    behind = 0 if there is None else there.sequence
    await bus.js.publish(subject, encode(record), headers={"Nats-Msg-Id": f"policy-{source.policy.version}-{behind}"})
