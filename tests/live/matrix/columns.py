"""The behaviours of the matrix and the tests that prove them, by name; a parameter stands in brackets."""

COLUMNS: dict[str, tuple[str, ...]] = {
    "prompt": ("a_prompt_becomes_one_turn",),
    "streaming": ("what_was_streamed_is_what_was_said",),
    "verbatim": ("every_line_comes_once_in_order_verbatim",),
    "tools": ("a_tool_is_told_from_its_call_to_its_end",),
    "approve": ("a_decision_reaches_the_agent[allow]",),
    "deny": ("a_decision_reaches_the_agent[deny]",),
    "changed input": ("a_tool_runs_with_the_input_that_a_decision_gave_it",),
    "question": ("an_answer_reaches_the_agent",),
    "plan": ("an_approved_plan_goes_on",),
    "interrupt": ("an_interrupt_ends_the_turn_and_not_the_agent",),
    "interrupt while asking": ("an_interrupt_withdraws_what_was_asked",),
    "prompt in mid-turn": ("a_prompt_during_a_turn_is_not_lost",),
    "second turn": ("a_second_prompt_becomes_a_second_turn",),
    "resume": ("a_resumed_session_goes_on",),
    "resume after kill -9": ("a_session_whose_agent_was_killed_goes_on",),
    "fork": ("a_copy_goes_on_by_itself",),
    "death in mid-turn": ("a_killed_agent_ends_its_messages",),
    "close": ("closing_leaves_no_process",),
    "unknown message": ("a_message_of_next_year_does_no_harm", "an_unknown_message_is_kept_as_unknown"),
    "huge message": ("a_huge_answer_comes_whole",),
    "slow agent": ("a_slow_answer_shows_as_it_comes",),
    "API 400": ("trouble_with_the_model_ends_the_turn_and_not_the_session[err400]",),
    "API 401": ("trouble_with_the_model_ends_the_turn_and_not_the_session[err401]",),
    "API 429": ("trouble_with_the_model_ends_the_turn_and_not_the_session[err429]",),
    "API 500": ("trouble_with_the_model_ends_the_turn_and_not_the_session[err500]",),
    "API drops": ("trouble_with_the_model_ends_the_turn_and_not_the_session[drop]",),
    "honest claims": ("it_claims_what_it_can_do_and_no_more",),
}

SMOKE = ("prompt", "tools", "approve", "deny", "interrupt", "resume")
"""The columns that `just smoke` runs of the rows that are marked so."""
