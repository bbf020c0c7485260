"""Tokens, sign-in links and devices from the command line."""

import json
import urllib.error
import urllib.request

from tests.integration.supervisor.running import Up


def post(url: str, body: object, **headers: str) -> tuple[int, dict[str, object], str | None]:
    request = urllib.request.Request(
        url, json.dumps(body).encode(), {"Content-Type": "application/json", **headers}, method="POST"
    )
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, json.loads(answer.read()), answer.headers.get("Set-Cookie")
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.loads(error.read()), None


def gateway(up: Up) -> str:
    return str(json.loads((up.home / "state.json").read_text())["gateway"])


def test_a_token_from_its_making_to_its_end(up: Up) -> None:
    made = up.cli("token", "create", "--actor", "bob@example.org", "--role", "viewer", "--lasts", "1h", "--label", "CI")
    token = made.stdout.strip()
    assert token.startswith("trk_")
    assert "(viewer)" in made.stderr
    bearer = {"Authorization": f"Bearer {token}"}
    assert post(f"{gateway(up)}/api/v1/session.list", {}, **bearer)[0] == 200
    assert post(f"{gateway(up)}/api/v1/token.list", {}, **bearer)[0] == 403
    row = next(line.split("\t") for line in up.ok("token", "list").splitlines() if "bob@example.org" in line)
    assert (row[1:4], row[7]) == (["bob@example.org", "viewer", "created"], "CI")
    assert token not in up.ok("token", "list", "--json")
    up.ok("token", "revoke", row[0])
    assert post(f"{gateway(up)}/api/v1/session.list", {}, **bearer)[0] == 401


def test_a_token_limited_to_a_directory_sees_only_its_sessions(up: Up) -> None:
    project = up.home / "limited project"
    project.mkdir()
    (up.home / "link").symlink_to(project)
    up.ok("run", "demo", "hello", "--cwd", str(project))
    up.ok("run", "demo", "hello", "--cwd", str(up.home))
    made = up.ok("token", "create", "--actor", "bob", "--role", "participant", "--workspace", str(up.home / "link"))
    bearer = {"Authorization": f"Bearer {made.strip()}"}
    _, body, _ = post(f"{gateway(up)}/api/v1/session.list", {}, **bearer)
    assert [state["cwd"] for state in body["sessions"]] == [str(project)]  # type: ignore[attr-defined]
    where = {"agent": "demo", "wait": False}
    assert post(f"{gateway(up)}/api/v1/session.create", {**where, "cwd": str(project)}, **bearer)[0] == 200
    status, refused, _ = post(f"{gateway(up)}/api/v1/session.create", {**where, "cwd": str(up.home)}, **bearer)
    assert (status, refused["code"]) == (403, "forbidden")


def test_a_sign_in_link_signs_a_browser_in_once(up: Up) -> None:
    link = up.ok("sign-in", "--actor", "ann", "--role", "approver").strip()
    address, _, code = link.partition("/sign-in#code=")
    assert address == gateway(up)
    status, who, cookie = post(f"{address}/sign-in", {"code": code}, Origin=address)
    assert (status, who["actor"], who["role"]) == (200, "ann", "approver")
    assert cookie is not None
    assert {"HttpOnly", "SameSite=Strict"} <= {part.strip() for part in cookie.split(";")}
    assert post(f"{address}/sign-in", {"code": code}, Origin=address)[0] == 401
    assert any("\tann\tapprover\tsign-in\t" in line for line in up.ok("token", "list").splitlines())
    assert up.ok("sign-in", "--url", "https://box.example.org/").startswith("https://box.example.org/sign-in#code=")


def test_devices_are_listed_renamed_and_revoked(up: Up) -> None:
    link = up.ok("sign-in", "--actor", "ann").strip()
    address, _, code = link.partition("/sign-in#code=")
    key = "A" * 43 + "="
    _, who, _ = post(f"{address}/sign-in", {"code": code, "device": "phone", "key": key}, Origin=address)
    device = str(who["device"])
    assert [line.split("\t")[:3] for line in up.ok("devices").splitlines()] == [[device[:16], "ann", "phone"]]
    up.ok("devices", "rename", device[:16], "Ann's phone")
    assert json.loads(up.ok("devices", "--json"))["name"] == "Ann's phone"
    up.ok("devices", "revoke", device[:16])
    assert up.ok("devices") == ""


def test_what_is_wrong_is_said(up: Up) -> None:
    assert "no duration" in up.cli("token", "create", "--actor", "x", "--role", "viewer", "--lasts", "soon").stderr
    assert up.cli("token", "revoke", "zzz").stderr.startswith("error: bad_id: 0 tokens begin with 'zzz'")
    assert up.cli("devices", "revoke", "zzz").stderr.startswith("error: bad_params: nothing begins with 'zzz'")
