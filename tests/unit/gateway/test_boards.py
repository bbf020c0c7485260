"""What members wait for, beside what is asked on the bus."""

from trunkline_fold.asks import AskStatus, PermissionAsk
from trunkline_fold.team import Team, TeamMember, TeamRequest
from trunkline_gateway.boards import Found
from trunkline_wire.asks import PermissionRequested

LEAD = "ses_" + "0" * 32
TIME = "2026-11-29T10:00:00.000000Z"


def asking(status: AskStatus, lane: str) -> PermissionAsk:
    requested = PermissionRequested(ask="ask_1", incarnation="inc_1", name="Bash", kind="execute", options=[])
    return PermissionAsk(
        ask="ask_1",
        session=LEAD,
        incarnation="inc_1",
        requested=requested,
        sequence=1,
        time=TIME,
        status=status,
        lane=lane,
    )


def test_a_permission_that_is_asked_on_the_bus_is_shown_there_alone() -> None:
    members = {name: TeamMember(name=name, joined=TIME, updated=TIME, lane=f"itm_{name}") for name in ("ann", "bob")}
    waits = {
        "1": TeamRequest(request="1", kind="permission", member="ann"),
        "2": TeamRequest(request="2", kind="plan", member="ann"),
        "3": TeamRequest(request="3", kind="permission", member="bob"),
    }
    found = Found(LEAD, Team(name="lab", created=TIME, updated=TIME, members=members, open=waits))
    assert [one.request for one in found.requests([])] == ["1", "2", "3"]
    assert [one.request for one in found.requests([asking("open", "itm_ann")])] == ["2", "3"]
    assert [one.request for one in found.requests([asking("decided", "itm_ann")])] == ["1", "2", "3"]
