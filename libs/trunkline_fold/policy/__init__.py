"""Policies: rules in TOML that answer an ask, or say how long it waits and who may answer. The first rule that matches wins.

    default = "ask"                     # what happens where no rule matches: ask, allow or deny
    protect = true                      # put the rules before all others that keep agents off Trunkline itself

    [[rule]]
    name = "tests"
    action = "allow"
    tool = ["Bash", "shell"]            # globs on the tool's name
    kind = "execute"
    command = "pytest*"                 # globs on the command line
    cwd = "~/src/**"                    # globs on the session's directory
    cost_at_most = 5.0                  # what the session has cost so far, USD

    [[rule]]
    name = "secrets"
    action = "deny"
    path = [".env", "~/.ssh/**"]        # globs on every path that the input names
    message = "Keys stay here."

    [[rule]]
    name = "two for what can't be undone"
    action = "ask-two"                  # two different people have to allow it, one may deny it
    danger = ["destroys", "publishes"]  # classes of commands and paths
    role = "owner"                      # the lowest role that may answer
    signed = true                       # and only signed by a registered device

    [[rule]]
    name = "at night"
    action = "ask"
    hours = "22:00-06:00"               # by the server's clock; a night belongs to the day it begins on
    weekdays = ["mon", "tue", "wed", "thu", "fri"]
    zone = "Europe/Berlin"              # UTC without it
    expires_after = 600                 # seconds
    on_expiry = "deny"

Further keys: `adapter`, `workspace`, `mcp_server`, `cost_at_least`, `quorum`, and `asks` for rules about questions and
plans. All keys of a rule must match; of a list one entry is enough. A rule that allows is read narrowly: all paths must
match, behind symbolic links too where this host can see them; a command is matched as a whole, and may hold no shell
operator, way up the tree or option that starts another program that the pattern does not hold itself. One that denies or
asks is read widely: any path, any command within, whatever is quoted, nested or piped into a shell. An unknown cost matches
no rule about costs. What a program does once it runs no rule can see: policies narrow what people are asked, they are no
sandbox.
"""

from trunkline_fold.policy.judge import Circumstances, Explanation, Step, decide, explain
from trunkline_fold.policy.parse import parse_policy
from trunkline_fold.policy.rules import Action, Danger, Policy, Role, Rule, Ruling, protecting_rules

__all__ = [
    "Action",
    "Circumstances",
    "Danger",
    "Explanation",
    "Policy",
    "Role",
    "Rule",
    "Ruling",
    "Step",
    "decide",
    "explain",
    "parse_policy",
    "protecting_rules",
]
