"""What the permission service can be told."""

from pathlib import Path

from trunkline_service.settings import Settings


class PermissionsSettings(Settings, frozen=True, kw_only=True):
    """`policy` is the file with the rules, by default `policy.toml` in the home directory."""

    policy: Path | None = None
    poll_s: float = 0.5
    """Seconds between two looks at the file."""

    @property
    def policy_path(self) -> Path:
        return self.policy or self.home / "policy.toml"
