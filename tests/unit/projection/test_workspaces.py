"""A workspace is reduced from its sessions, whatever their order."""

import itertools

from trunkline_projector.workspaces import MAX_LISTED, Listed, reduce

WORKSPACE = "ws_" + "a" * 32


def listed(session: str, updated: str, status: str = "idle") -> Listed:
    return Listed(session=session, workspace=WORKSPACE, host="hst_1", cwd="/src", status=status, updated=updated)


def test_newest_first_and_counted_by_status() -> None:
    sessions = [listed("ses_1", "2026-01-01"), listed("ses_2", "2026-01-03", "running"), listed("ses_3", "2026-01-02")]
    for order in itertools.permutations(sessions):
        made = reduce(WORKSPACE, list(order))
        assert made is not None
        assert [one.session for one in made.sessions] == ["ses_2", "ses_3", "ses_1"]
        assert (made.total, made.statuses) == (3, {"idle": 2, "running": 1})
        assert (made.host, made.cwd, made.updated) == ("hst_1", "/src", "2026-01-03")


def test_no_sessions_no_workspace() -> None:
    assert reduce(WORKSPACE, []) is None


def test_the_list_is_capped_and_the_count_is_not() -> None:
    made = reduce(WORKSPACE, [listed(f"ses_{n:03d}", f"2026-01-01T{n:03d}") for n in range(MAX_LISTED + 5)])
    assert made is not None
    assert (len(made.sessions), made.total) == (MAX_LISTED, MAX_LISTED + 5)
    assert made.sessions[0].session == f"ses_{MAX_LISTED + 4:03d}"
