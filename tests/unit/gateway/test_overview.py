"""The counts of the overview: what is counted anew comes to the same as what is counted from the start."""

from hypothesis import given
from hypothesis import strategies as st

from trunkline_gateway.overview import Share, Totals

SHARES = st.builds(
    Share,
    status=st.sampled_from(["running", "idle", "failed"]),
    agent=st.sampled_from(["claude", "codex"]),
    version=st.sampled_from(["1", "2"]),
    workspace=st.sampled_from(["ws_a", "ws_b"]),
    cwd=st.just("/src"),
    turns=st.integers(0, 9),
    input=st.integers(0, 10**9),
    output=st.integers(0, 10**9),
    cost_usd=st.integers(0, 1000).map(float),
    unknown=st.integers(0, 3),
)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.none() | SHARES), max_size=30))
def test_a_session_counts_once_with_its_last_share(puts: list[tuple[str, Share | None]]) -> None:
    live, fresh = Totals(), Totals()
    last: dict[str, Share | None] = {}
    for session, share in puts:
        live.put(session, share)
        last[session] = share
    for session, share in last.items():
        fresh.put(session, share)
    assert live.total == fresh.total
    assert live.statuses == fresh.statuses
    assert live.agents == fresh.agents
    assert live.workspaces == fresh.workspaces
    assert live.versions == fresh.versions
    kept = [share for share in last.values() if share is not None]
    assert live.total.sessions == len(kept)
    assert live.total.cost_usd == sum(share.cost_usd for share in kept)
