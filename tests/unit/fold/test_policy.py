"""Rulings: first match wins; rules that allow are read narrowly, rules that deny widely."""

import datetime as dt
import hashlib
from typing import Any

import pytest

from trunkline_fold.asks import AskRecord, AsksState, fold_asks
from trunkline_fold.policy import Circumstances, Policy, Ruling, decide, parse_policy
from trunkline_testkit.logs import Log
from trunkline_wire import Data, TrunklineError
from trunkline_wire.asks import PermissionRequested, PlanProposed, QuestionAsked

STATE_DIR = "/home/dev/.trunkline"
CWD = "/home/dev/src/app"


def record_of(data: Data) -> AskRecord:
    log = Log()
    event = log.agent(data)
    return fold_asks(AsksState(), event, 1).open[0]


def policy(text: str = "") -> Policy:
    return parse_policy(text, state_dir=STATE_DIR)


# a Friday, ten o'clock in London
MOMENT = dt.datetime(2026, 11, 27, 10, 0, tzinfo=dt.UTC)


def rule(policy_: Policy, data: Data, *, adapter: str = "demo", **about: Any) -> Ruling:
    circumstances: dict[str, Any] = {"adapter": adapter, "cwd": CWD, "home": "/home/dev", "moment": MOMENT, **about}
    return decide(policy_, record_of(data), Circumstances(**circumstances))


def ask(name: str = "Bash", kind: Any = "execute", **tool_input: Any) -> PermissionRequested:
    return PermissionRequested(ask="ask_1", incarnation="i", name=name, kind=kind, input=tool_input or None)


def run(command: Any) -> PermissionRequested:
    return ask(command=command)


def action(text: str, data: Data, **about: Any) -> str:
    return rule(policy(text), data, **about).action


def test_by_default_people_are_asked() -> None:
    ruling = rule(policy(), run("ls"))
    assert ruling == Ruling(action="ask", policy_version=hashlib.sha256(b"").hexdigest())


@pytest.mark.parametrize(
    "data",
    [
        ask("Read", "read", file_path="/home/dev/.trunkline/token"),
        ask("Read", "read", file_path="~/.trunkline/token"),
        ask("Read", "read", file_path="../../.trunkline/policy.toml"),
        ask("Read", "read", file_path="/home/dev/src/../.trunkline/token"),
        ask("Edit", "edit", path="file:///home/dev/.trunkline/policy%2Etoml"),
        ask("Glob", "search", path="/home/dev/.trunkline"),
        ask("Any", "other", nested={"files": ["/home/dev/.trunkline/state.json"]}),
        ask("Patch", "edit", changes={"/home/dev/.trunkline/policy.toml": {"type": "update"}}),
        ask("Odd", "other", anything="/home/dev/.trunkline/token"),
        run("cat /home/dev/.trunkline/token"),
        run("cat ~/.trunkline/token"),
        run('curl -H "Authorization: $(cat $HOME/.trunkline/token)" localhost'),
        run("echo $TRUNKLINE_HOME"),
        run("trunkline answer ask_1 --allow"),
        run("trunkline"),
        run("cd /tmp && trunkline approve"),
        run("/usr/local/bin/trunkline ls"),
        run("FOO=1 env BAR=2 trunkline ls"),
        run("sudo -E trunkline ls"),
        run("timeout 5 trunkline ls"),
        run("bash -c 'cd /tmp; trunkline ls'"),
        run("bash -lc \"sh -c 'trunkline ls'\""),
        run("true | xargs trunkline answer"),
        run("echo $(trunkline token)"),
        run("python3 -m trunkline_cli answer"),
        run(["bash", "-lc", "trunkline ls"]),
        run(["trunkline", "ls"]),
    ],
)
def test_agents_are_kept_off_trunkline_itself(data: Data) -> None:
    ruling = rule(policy(), data)
    assert ruling.action == "deny"
    assert ruling.rule is not None
    assert ruling.rule.startswith("trunkline-")
    assert ruling.message is not None


@pytest.mark.parametrize(
    "data",
    [
        run("grep -r trunkline README.md"),
        run("git commit -m 'trunkline is fun'"),
        ask("Read", "read", file_path="/home/dev/.trunkline-notes"),
        ask("Read", "read", file_path="trunkline.toml"),
    ],
)
def test_what_only_sounds_like_trunkline_is_asked_about(data: Data) -> None:
    assert action("", data) == "ask"


def test_a_command_is_denied_by_its_text_though_it_may_mean_another_directory() -> None:
    assert action("", run("ls /home/dev/.trunkline2")) == "deny"


def test_protection_can_be_turned_off_by_name_only() -> None:
    assert action("protect = false", run("trunkline ls")) == "ask"
    assert action('[[rule]]\nname = "all"\naction = "allow"', run("trunkline ls")) == "deny"


def test_the_first_rule_that_matches_wins_and_is_named() -> None:
    text = """
    default = "deny"
    [[rule]]
    name = "reads"
    action = "allow"
    kind = ["read", "search"]
    [[rule]]
    name = "demo reads"
    action = "deny"
    adapter = "demo"
    kind = "read"
    [[rule]]
    action = "ask"
    tool = "Bash*"
    """
    ruling = rule(policy(text), ask("Read", "read", file_path="a.py"))
    assert (ruling.action, ruling.rule, ruling.policy_version) == (
        "allow",
        "reads",
        hashlib.sha256(text.encode()).hexdigest(),
    )
    assert rule(policy(text), ask("BashOutput", "other")).rule == "rule 3"
    assert rule(policy(text), ask("Write", "edit")) == Ruling(action="deny", policy_version=policy(text).version)


@pytest.mark.parametrize(
    ("keys", "data", "matches"),
    [
        ('adapter = "cl*"', run("ls"), False),
        ('adapter = ["x", "demo"]', run("ls"), True),
        ('tool = "Bash"', run("ls"), True),
        ('tool = "bash"', run("ls"), False),
        ('kind = "edit"', run("ls"), False),
        ('cwd = "~/src/**"', run("ls"), True),
        ('cwd = "~/src/*"', run("ls"), True),
        ('cwd = "~/src"', run("ls"), False),
        ('workspace = "ws_1"', run("ls"), True),
        ('workspace = "ws_2"', run("ls"), False),
        ('mcp_server = "git*"', ask("mcp__github__create_issue"), True),
        ('mcp_server = "git*"', ask("Bash"), False),
        ('mcp_server = "lab"', ask("echo", server="lab"), True),
        ('command = "git *"', run("git push"), True),
        ('command = "git *"', ask("Read", file_path="git x"), False),
        ('command = "git *"\ntool = "Other"', run("git push"), False),
    ],
)
@pytest.mark.parametrize("verdict", ["allow", "deny"])
def test_every_key_narrows(keys: str, data: Data, matches: bool, verdict: str) -> None:
    text = f'[[rule]]\nname = "r"\naction = "{verdict}"\n{keys}'
    assert (action(text, data, workspace="ws_1") == verdict) is matches


@pytest.mark.parametrize(
    ("pattern", "path", "matches"),
    [
        (".env", "/home/dev/src/app/.env", True),
        (".env", "/home/dev/src/app/deep/.env", True),
        (".env", "/home/dev/src/app/.env.example", False),
        ("*.pem", "/etc/x.pem", True),
        ("~/.ssh/**", "/home/dev/.ssh/id", True),
        ("~/.ssh/**", "/home/dev/.ssh", True),
        ("~/.ssh/**", "/home/dev/.sshx/id", False),
        ("~/.ssh/", "/home/dev/.ssh/a/b", True),
        ("src/*", "/home/dev/src/app/src/a.py", True),
        ("src/*", "/home/dev/src/app/src/a/b.py", False),
        ("src/**", "/home/dev/src/app/src/a/b.py", True),
        ("src/**/b.py", "/home/dev/src/app/src/b.py", True),
        ("src/**/b.py", "/home/dev/src/app/src/x/y/b.py", True),
        ("./src/?.py", "/home/dev/src/app/src/a.py", True),
        ("/etc/**", "/etc/passwd", True),
        ("/etc/**", "/home/etc/passwd", False),
        ("/a[b]/c", "/a[b]/c", True),
    ],
)
def test_path_globs(pattern: str, path: str, matches: bool) -> None:
    text = f'[[rule]]\nname = "r"\naction = "deny"\npath = "{pattern}"'
    assert (action(text, ask("Read", "read", file_path=path)) == "deny") is matches


ALLOW_GIT = '[[rule]]\nname = "r"\naction = "allow"\ncommand = ["git status*", "git diff | cat"]'
DENY_RM = '[[rule]]\nname = "r"\naction = "deny"\ncommand = "rm -rf *"'


@pytest.mark.parametrize(
    "command", ["git status", "git status --short", "  git status  ", "git diff | cat", ["git", "status"]]
)
def test_an_allowed_command_is_allowed(command: Any) -> None:
    assert action(ALLOW_GIT, run(command)) == "allow"


@pytest.mark.parametrize(
    "command",
    [
        "git push",
        "git status; rm -rf /",
        "git status && rm -rf /",
        "git status | sh",
        "git status > /etc/passwd",
        "git status < /dev/sda",
        "git status $(rm -rf /)",
        "git status `rm -rf /`",
        "git status $X",
        "git status\nrm -rf /",
        "git status & rm x",
        "git diff | cat | sh",
        "x git status",
        ["git", "push"],
        None,
    ],
)
def test_no_second_command_slips_in_behind_an_allowed_one(command: Any) -> None:
    assert action(ALLOW_GIT, run(command)) == "ask"


@pytest.mark.parametrize(
    "command",
    [
        "rm -rf /",
        "cd / && rm -rf x",
        "true || rm -rf x",
        "(rm -rf x)",
        "sudo rm -rf x",
        "/bin/rm -rf x",
        "A=1 rm -rf x",
        "sh -c 'rm -rf x'",
        "echo $(rm -rf x)",
        "echo 'a\nrm -rf x",
    ],
)
def test_a_denied_command_is_found_within_others(command: str) -> None:
    assert action(DENY_RM, run(command)) == "deny"
    assert action(DENY_RM, run("rm -r x")) == "ask"


def test_allowed_paths_must_be_all_of_them_and_no_command() -> None:
    text = '[[rule]]\nname = "r"\naction = "allow"\npath = "src/**"'
    assert action(text, ask("Edit", "edit", file_path="src/a.py")) == "allow"
    assert action(text, ask("Move", "move", old_path="src/a.py", new_path="/etc/a.py")) == "ask"
    assert action(text, ask("Edit", "edit", file_path="src/../../x")) == "ask"
    assert action(text, ask("Think", "think")) == "ask"
    assert action(text, ask("Bash", "execute", command="rm -rf x", cwd="src")) == "ask"


def test_what_can_not_be_seen_is_not_allowed() -> None:
    hidden = {"sha256": "0" * 64, "size": 10**6, "media_type": "text/plain", "preview": "git status"}
    assert action(ALLOW_GIT, ask(command=hidden)) == "ask"
    text = '[[rule]]\nname = "r"\naction = "allow"\npath = "src/**"'
    assert action(text, ask("Edit", "edit", file_path="src/a", content=hidden)) == "ask"


def test_how_long_an_ask_waits() -> None:
    text = '[[rule]]\nname = "r"\naction = "ask"\nexpires_after = 90\non_expiry = "allow"\nquorum = 2'
    ruling = rule(policy(text), run("ls"))
    assert (ruling.action, ruling.expires_after, ruling.on_expiry, ruling.quorum) == ("ask", 90.0, "allow", 2)
    assert rule(policy(), run("ls")).expires_after is None


@pytest.mark.parametrize(
    "data", [QuestionAsked(ask="ask_1", incarnation="i"), PlanProposed(ask="ask_1", incarnation="i", plan="rm -rf /")]
)
def test_questions_and_plans_are_for_people(data: Data) -> None:
    assert action('default = "allow"\n[[rule]]\nname = "all"\naction = "allow"', data) == "ask"
    assert action('default = "deny"\n[[rule]]\nname = "all"\naction = "deny"', data) == "ask"
    text = '[[rule]]\nname = "w"\naction = "ask"\nasks = ["question", "plan"]\nexpires_after = 5'
    ruling = rule(policy(text), data)
    assert (ruling.action, ruling.rule, ruling.expires_after) == ("ask", "w", 5.0)


def in_rule(keys: str) -> str:
    return f'[[rule]]\nname = "r"\n{keys}'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("rule = [", ["not TOML"]),
        ("colour = 1", ["the policy", "'colour'", "unknown"]),
        ('default = "maybe"', ["'default'", "maybe"]),
        ("protect = 1", ["'protect'"]),
        ("[rule]\nname = 1", ["'rule'", "[[rule]]"]),
        (in_rule(""), ["rule 'r'", "'action'", "missing"]),
        (in_rule('action = "kill"'), ["rule 'r'", "'action'", "kill"]),
        (in_rule('action = "allow"\ntols = "Bash"'), ["rule 'r'", "'tols'", "unknown"]),
        (in_rule('action = "allow"\ntool = 5'), ["rule 'r'", "'tool'"]),
        (in_rule('action = "allow"\ntool = []'), ["rule 'r'", "'tool'", "empty"]),
        (in_rule('action = "allow"\nkind = "write"'), ["rule 'r'", "'kind'", "write"]),
        (in_rule('action = "ask"\nexpires_after = 0'), ["rule 'r'", "'expires_after'"]),
        (in_rule('action = "ask"\nexpires_after = true'), ["rule 'r'", "'expires_after'"]),
        (in_rule('action = "ask"\nexpires_after = nan'), ["rule 'r'", "'expires_after'"]),
        (in_rule('action = "allow"\nexpires_after = 5'), ["rule 'r'", "'expires_after'", "`ask`"]),
        (in_rule('action = "ask"\non_expiry = "deny"'), ["rule 'r'", "'on_expiry'", "expires_after"]),
        (in_rule('action = "ask"\nquorum = 0'), ["rule 'r'", "'quorum'"]),
        (in_rule('action = "deny"\nasks = "question"'), ["rule 'r'", "'asks'"]),
        (in_rule('action = "deny"\n' + in_rule('action = "deny"')), ["rule 'r'", "'name'", "taken"]),
        ('[[rule]]\naction = "deny"\nmessage = 7', ["rule 'rule 1'", "'message'"]),
        ('[[rule]]\nname = ""\naction = "deny"', ["rule 1", "'name'"]),
    ],
)
def test_a_wrong_policy_is_refused_naming_rule_and_key(text: str, words: list[str]) -> None:
    with pytest.raises(TrunklineError) as refused:
        policy(text)
    assert refused.value.code == "bad_settings"
    for word in words:
        assert word in refused.value.message


def test_the_example_in_the_modules_text_is_a_policy() -> None:
    from trunkline_fold import policy as module

    assert module.__doc__ is not None
    example = "\n".join(line for line in module.__doc__.splitlines() if line.startswith("    "))
    parsed = policy(example)
    assert [r.name for r in parsed.rules if not r.name.startswith("trunkline")] == [
        "tests",
        "secrets",
        "two for what can't be undone",
        "at night",
    ]
    assert rule(parsed, run("pytest -q"), cost_usd=1.0).rule == "tests"
    assert rule(parsed, ask("Read", "read", file_path="/home/dev/.ssh/id")).message == "Keys stay here."
