"""Pinned npm packages, of the tests' programs or of a project: `python -m tests.node.install PROJECT` prints where they are."""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


def node_modules(project: Path = HERE) -> Path:
    """The folder with `node_modules` of a project's lock file, installed once outside the clone."""
    lock = (project / "package-lock.json").read_bytes()
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    folder = cache / "trunkline/node" / hashlib.sha256(lock).hexdigest()[:16]
    if not (folder / "node_modules").is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        for name in ("package.json", "package-lock.json", ".npmrc"):
            shutil.copy(project / name, folder)
        command = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"]
        subprocess.run(command, cwd=folder, check=True, timeout=300)
    return folder


if __name__ == "__main__":
    sys.stdout.write(f"{node_modules(*map(Path, sys.argv[1:]))}\n")
