"""Where the recorded cases of terminals are."""

from pathlib import Path

ROOT = Path(__file__).parents[2] / "recordings" / "pty"
CASES = sorted(path for path in ROOT.iterdir() if path.is_dir())
