"""What is allowed for good: rules from the forms in which agents propose them, and never more than was proposed."""

from typing import Any

import pytest

from trunkline_fold.asks import AsksState, fold_asks
from trunkline_fold.session_rules import covering, suggested
from trunkline_testkit.logs import Log
from trunkline_wire.asks import AskDecided, AskOption, AskRevoked, PermissionRequested, SessionRule

ASK = "ask_0123456789abcdef0123456789abcdef"
NAME = "session-0123456789ab"


def asked(suggestions: Any, *, always: int = 1, name: str = "Bash", ask: str = ASK, **tool_input: Any) -> Any:
    options = [AskOption(id="once", name="Once", kind="allow_once")]
    options += [AskOption(id=f"always{n}", name="Always", kind="allow_always") for n in range(always)]
    return PermissionRequested(
        ask=ask, name=name, incarnation="i", input=tool_input or None, options=options, suggestions=suggestions
    )


def adds(content: str | None, tool: str = "Bash", **fields: Any) -> dict[str, Any]:
    rule = {"toolName": tool} | ({} if content is None else {"ruleContent": content})
    return {"type": "addRules", "rules": [rule], "behavior": "allow", "destination": "session", **fields}


@pytest.mark.parametrize(
    ("requested", "command"),
    [
        # objects with a tool and a content, as they were recorded
        (
            asked([adds("mkdir -p zz_sub && echo sub-out")], command="mkdir -p zz_sub && echo sub-out"),
            ["mkdir -p zz_sub && echo sub-out"],
        ),
        (asked([adds("git log:*")], command="git log -1"), ["git log", "git log *"]),
        (asked([adds("ls *.py")], command="ls *.py"), ["ls [*].py"]),
        (asked([adds(None, "Edit")], name="Edit", file_path="a"), []),
        # the words that a command begins with
        (asked(["mkdir", "-p", "amended"], command="mkdir -p amended"), ["mkdir -p amended", "mkdir -p amended *"]),
        # globs on commands
        (asked(["git status *"], command="git status --short"), ["git status *", "git status"]),
        (asked(["ls"], command="ls"), ["ls"]),
    ],
)
def test_what_is_understood_makes_a_rule(requested: PermissionRequested, command: list[str]) -> None:
    assert suggested(requested, "always0") == SessionRule(rule=NAME, tool=requested.name, command=command)


@pytest.mark.parametrize(
    "requested",
    [
        asked(None, command="ls"),
        asked([{"type": "setMode", "mode": "acceptEdits", "destination": "session"}], name="Edit", file_path="a"),
        asked([{"type": "addDirectories", "directories": ["/x"]}], name="Read", file_path="a"),
        asked([adds("ls", behavior="deny")], command="ls"),
        asked([adds("ls", "Other")], command="ls"),
        asked([adds(None)], command="ls"),
        asked([adds("domain:example.org", "WebFetch")], name="WebFetch", url="https://example.org"),
        asked([adds("ls"), {"type": "setMode", "mode": "acceptEdits"}], command="ls"),
        asked(["rm"], command="ls"),
        asked(["git", "log"], command="git 'log"),
        asked([1], command="ls"),
        asked([], command="ls"),
    ],
)
def test_what_is_not_understood_makes_none(requested: PermissionRequested) -> None:
    assert suggested(requested, "always0") is None


def test_an_option_stands_for_its_own_suggestion() -> None:
    both = asked([adds("ls"), adds("ls:*")], always=2, command="ls")
    assert suggested(both, "once") is None
    assert suggested(both, None) is None
    assert suggested(both, "unknown") is None
    made = [suggested(both, f"always{n}") for n in range(2)]
    assert [rule.command for rule in made if rule is not None] == [["ls"], ["ls", "ls *"]]


def test_a_rule_holds_from_its_decision_to_its_revocation() -> None:
    log = Log()
    log.created()
    log.agent(asked([adds("git log:*")], command="git log"))
    log.permission(
        AskDecided(
            ask=ASK,
            behaviour="allow",
            by="ann",
            option="always0",
            remembers=SessionRule(rule=NAME, tool="Bash", command=["git log", "git log *"]),
        )
    )
    # a decision that came too late makes no rule
    log.permission(
        AskDecided(ask=ASK, behaviour="allow", by="bob", remembers=SessionRule(rule="session-late", tool="Bash"))
    )

    def rules() -> AsksState:
        state = AsksState()
        for sequence, _, event in log.entries:
            state = fold_asks(state, event, sequence)
        return state

    (rule,) = rules().rules
    assert (rule.rule, rule.ask, rule.by, rule.in_force) == (NAME, ASK, "ann", True)
    for command, covered in (
        ("git log -1", True),
        ("git log", True),
        ("git logx", False),
        ("git log; rm x", False),
        ("git push", False),
    ):
        assert (covering([rule], asked(None, command=command)) is not None) is covered, command
    assert covering([rule], asked(None, name="Other", command="git log")) is None
    assert covering([rule], asked(None, command="git log", env={"GIT_PAGER": "rm"})) is None
    assert covering([rule], asked(None, file_path="x")) is None

    log.permission(AskRevoked(ask=ASK, rule=NAME, answer="cmd_1", by="bob"))
    (gone,) = rules().rules
    assert (gone.in_force, gone.revoked_by, gone.revoked_answer) == (False, "bob", "cmd_1")
    assert covering([gone], asked(None, command="git log")) is None


def test_a_rule_for_a_tool_is_not_one_for_its_commands() -> None:
    log = Log()
    log.created()
    log.agent(asked([adds(None, "Edit")], name="Edit", file_path="a"))
    log.permission(
        AskDecided(ask=ASK, behaviour="allow", by="ann", remembers=SessionRule(rule=NAME, tool="Edit", command=[]))
    )
    state = AsksState()
    for sequence, _, event in log.entries:
        state = fold_asks(state, event, sequence)
    assert covering(state.rules, asked(None, name="Edit", file_path="b")) is not None
    assert covering(state.rules, asked(None, name="Edit", command="rm x")) is None
    hidden = {"sha256": "0" * 64, "size": 10**6}
    assert covering(state.rules, asked(None, name="Edit", file_path="b", content=hidden)) is None
