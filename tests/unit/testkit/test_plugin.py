import os
import stat
from pathlib import Path


def test_home_is_private_named_in_the_environment_and_short_enough_for_sockets(home: Path) -> None:
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    assert os.environ["TRUNKLINE_HOME"] == str(home)
    assert len(str(home)) < 60
