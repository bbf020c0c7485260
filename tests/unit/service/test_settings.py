from pathlib import Path

import pytest

from trunkline_service import Secret, Settings, effective, load
from trunkline_wire import TrunklineError


class Own(Settings, frozen=True, kw_only=True):
    port: int = 30086
    hosts: list[str] = []
    verbose: bool = False
    relay_key: Secret | None = None


def loaded(tmp_path: Path, toml: str = "", argv: tuple[str, ...] = (), **environ: str) -> Own:
    (tmp_path / "trunkline.toml").write_text(toml)
    settings, _ = load(Own, "gateway", argv=argv, environ={"TRUNKLINE_HOME": str(tmp_path), **environ})
    return settings


def test_each_source_overrides_the_one_before(tmp_path: Path) -> None:
    toml = 'nats_url = "nats://file:1"\nlog_level = "debug"\n[gateway]\nport = 1\nhosts = ["a"]\n'
    settings = loaded(tmp_path, toml)
    assert (settings.nats_url, settings.log_level, settings.port, settings.hosts) == (
        "nats://file:1",
        "debug",
        1,
        ["a"],
    )
    settings = loaded(tmp_path, toml, TRUNKLINE_NATS_URL="nats://env:2", TRUNKLINE_GATEWAY_PORT="2")
    assert (settings.nats_url, settings.log_level, settings.port) == ("nats://env:2", "debug", 2)
    settings = loaded(tmp_path, toml, ("--port", "3", "--hosts", "x,y", "--verbose"), TRUNKLINE_GATEWAY_PORT="2")
    assert (settings.port, settings.hosts, settings.verbose) == (3, ["x", "y"], True)


def test_a_service_may_be_told_apart_from_the_others(tmp_path: Path) -> None:
    toml = 'log_level = "debug"\n[gateway]\nlog_level = "error"\n[projector]\nanything = 1\n'
    assert loaded(tmp_path, toml).log_level == "error"
    settings = loaded(tmp_path, TRUNKLINE_HTTP_PORT="1", TRUNKLINE_GATEWAY_HTTP_PORT="2", TRUNKLINE_PROJECTOR_X="3")
    assert settings.http_port == 2


@pytest.mark.parametrize(
    ("toml", "environ", "named"),
    [
        ('nats_ulr = "x"', {}, "nats_url"),
        ("[gateway]\nprot = 1", {}, "port"),
        ("[gatewey]\nport = 1", {}, "gatewey"),
        ("port = 1", {}, "port"),
        ("gateway = 1", {}, "[gateway]"),
        ("[gateway", {}, "trunkline.toml"),
        ("", {"TRUNKLINE_NATS_ULR": "x"}, "TRUNKLINE_NATS_URL"),
        ("", {"TRUNKLINE_GATEWAY_PROT": "1"}, "TRUNKLINE_GATEWAY_PORT"),
        ("", {"TRUNKLINE_GATEWAY_PORT": "many"}, "port"),
        ("", {"TRUNKLINE_LOG_FORMAT": "xml"}, "log_format"),
    ],
)
def test_what_nobody_knows_is_refused_by_name(tmp_path: Path, toml: str, environ: dict[str, str], named: str) -> None:
    with pytest.raises(TrunklineError, match=r".") as caught:
        loaded(tmp_path, toml, (), **environ)
    assert caught.value.code == "bad_settings"
    assert named in caught.value.message


def test_variables_that_resemble_no_setting_are_not_ours(tmp_path: Path) -> None:
    assert loaded(tmp_path, TRUNKLINE_TEST_NATS="docker", TRUNKLINE_SESSION="ses_x", TRUNKLINE_PORT="1").port == 30086


def test_effective_values_hide_secrets(tmp_path: Path) -> None:
    settings = loaded(tmp_path, TRUNKLINE_NATS_URL="nats://me:hunter2@host:4222", TRUNKLINE_GATEWAY_RELAY_KEY="hunter3")
    shown = effective(settings)
    assert shown["nats_url"] == "nats://********@host:4222"
    assert shown["relay_key"] == "********"
    assert shown["port"] == 30086
    assert "hunter" not in repr(shown)


def test_check_is_told_apart(tmp_path: Path) -> None:
    _, check = load(Own, "gateway", argv=["--check", "--home", str(tmp_path)], environ={})
    assert check


def test_the_home_flag_decides_which_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "trunkline.toml").write_text('log_level = "error"')
    settings, _ = load(Own, "gateway", argv=["--home", str(tmp_path)], environ={"TRUNKLINE_HOME": "/nonexistent"})
    assert (settings.home, settings.log_level) == (tmp_path, "error")
