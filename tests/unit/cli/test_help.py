"""Every command explains itself, with examples, and nothing heavy is loaded for that."""

import subprocess
import sys

import click
import pytest

from trunkline_cli.root import COMMANDS, LazyGroup, cli, run


def test_the_overview_lists_every_command_and_loads_none(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--help"]) == 0
    shown = capsys.readouterr().out
    assert all(f"  {name} " in shown for name in COMMANDS)
    heavy = [
        "aiohttp",
        "nats",
        "rich",
        "trunkline_wire",
        "trunkline_bus",
        "trunkline_fold",
        "opentelemetry",
        "msgspec",
        "asyncio",
    ]
    script = (
        "import sys; from trunkline_cli.root import run; run(['--help']);"
        f"print([name for name in {heavy!r} if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_has_a_help_text_with_examples(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    command = LazyGroup().get_command(click.Context(cli), name)
    path = [name] if not isinstance(command, click.Group) else [name, *list(command.commands)[:1]]
    assert run([*path, "--help"]) == 0
    shown = capsys.readouterr().out
    assert f"Usage: trunkline {' '.join(path)}" in shown
    assert "Examples:" in shown
    assert f"  trunkline {name}" in shown


def test_a_command_that_is_not_there_is_wrong_usage_with_a_hint(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["atach"]) == 2
    assert "there is no command 'atach': did you mean 'attach'?" in capsys.readouterr().err
    assert run(["status"]) == 2
    assert "there is no command 'status': did you mean 'daemon status' or " in capsys.readouterr().err
    assert run(["xyzzy"]) == 2
    assert "there is no command 'xyzzy': see `trunkline --help`" in capsys.readouterr().err
    assert run([]) == 2
    assert run(["ls", "--nonsense"]) == 2


def test_an_error_is_one_line_with_its_code(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TRUNKLINE_URL", raising=False)
    monkeypatch.setenv("TRUNKLINE_HOME", "/nowhere")
    assert run(["ls"]) == 1
    said = capsys.readouterr().err
    assert said.startswith("error: not_running: Trunkline does not run in '/nowhere': start it with `trunkline up`")
    assert said.count("\n") == 1


def test_the_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == 0
    assert capsys.readouterr().out.startswith("trunkline 0.")
