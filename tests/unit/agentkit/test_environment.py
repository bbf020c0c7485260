"""An agent's environment, its manifest, its directory for temporary files."""

import os
from pathlib import Path

import pytest

from trunkline_agentkit.environment import build_environment, temporary_directory
from trunkline_agentkit.manifest import Manifest, load_manifest
from trunkline_wire import TrunklineError
from trunkline_wire.ids import new_session_id

MANIFEST = Manifest(name="x", title="X", protocol="p", program="xprog", install="get it", variables=("X_KEY", "XAI_*"))


def test_the_environment_is_what_is_named_and_nothing_else(tmp_path: Path) -> None:
    source = {
        "PATH": "/bin",
        "HOME": "/home/me",
        "LC_ALL": "C",
        "https_proxy": "http://p",
        "X_KEY": "k",
        "XAI_URL": "u",
        "X_KEY_OTHER": "no",
        "AWS_SECRET_ACCESS_KEY": "no",
        "TRUNKLINE_NATS_SEED": "no",
        "TMPDIR": "/elsewhere",
    }
    found = build_environment(
        MANIFEST,
        {"MINE": "1", "TRUNKLINE_SESSION": "forged"},
        session="ses",
        incarnation="inc",
        temporary=tmp_path,
        source=source,
    )
    assert found == {
        "PATH": "/bin",
        "HOME": "/home/me",
        "LC_ALL": "C",
        "https_proxy": "http://p",
        "X_KEY": "k",
        "XAI_URL": "u",
        "TMPDIR": str(tmp_path),
        "MINE": "1",
        "TRUNKLINE_SESSION": "ses",
        "TRUNKLINE_INCARNATION": "inc",
    }


def test_a_directory_for_temporary_files_is_private_and_stays(tmp_path: Path) -> None:
    session = new_session_id()
    found = temporary_directory(session, tmp_path)
    assert found == temporary_directory(session, tmp_path)
    assert found.stat().st_mode & 0o777 == 0o700
    found.rmdir()
    found.symlink_to("/tmp")
    with pytest.raises((TrunklineError, OSError)):
        temporary_directory(session, tmp_path)


def test_a_directory_that_others_can_enter_is_refused(tmp_path: Path) -> None:
    root = tmp_path / f"trunkline-{os.getuid()}"
    root.mkdir(mode=0o777)
    root.chmod(0o777)
    with pytest.raises(TrunklineError) as refused:
        temporary_directory(new_session_id(), tmp_path)
    assert refused.value.code == "bad_directory"


def test_a_manifest_with_a_typing_error_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "bad_adapter"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "manifest.toml").write_text('name = "x"\ntitle = "X"\nprotocol = "p"\nvariabels = []\n')
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(TrunklineError, match="variabels") as refused:
        load_manifest("bad_adapter")
    assert refused.value.code == "bad_settings"
