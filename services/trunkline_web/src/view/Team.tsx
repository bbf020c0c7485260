import { createMemo, createSignal, For, onCleanup, Show } from "solid-js";
import { newCommandId } from "trunkline-client";
import type { AskRecord } from "../client/protocol";
import { ago, count, money, visible } from "../model/format";
import { askerOf, currentTask, tokensIn, type Member, type Team as Board } from "../model/team";
import { watchTeam, type TeamView } from "../store/team";
import { connection, may, openAsks, say, world } from "../store/world";
import { AskCard } from "./AskCard";
import { now } from "./clock";
import { Icon } from "./Icon";
import { Requests, Talk } from "./TeamTalk";
import { Tasks } from "./TeamTasks";
import "../style/team.css";

/** A team: who is in it, what there is to do, what is said, what it costs, and what waits for people. */
export function Team(props: { id: string }) {
  const view = createMemo<TeamView>(() => {
    const made = watchTeam(props.id);
    onCleanup(() => made.end());
    return made;
  });
  return (
    <Show
      when={view().board.now}
      fallback={
        <p class="banner" role="status">
          {view().failure() || "…"}
        </p>
      }
    >
      {(team) => <Shown team={team()} view={view()} />}
    </Show>
  );
}

function Shown(props: { team: Board; view: TeamView }) {
  const team = () => props.team;
  const asks = createMemo(() => openAsks().filter((ask) => team().sessions.includes(ask.session)));
  return (
    <section class="page team" aria-labelledby="team-name">
      <Head team={team()} />
      <Show when={props.view.failure()}>
        <p class="error" role="alert">
          {props.view.failure()}
        </p>
      </Show>
      <section aria-labelledby="team-asks" hidden={asks().length === 0}>
        <h2 id="team-asks">Waiting for you</h2>
        <div class="team-asks" aria-live="polite">
          <For each={asks()}>{(ask) => <Asked ask={ask} team={team()} />}</For>
        </div>
      </section>
      <Members team={team()} />
      <Tasks team={team()} />
      <div class="pair">
        <Talk view={props.view} team={team()} />
        <Requests team={team()} />
      </div>
      <Costs team={team()} />
    </section>
  );
}

function Head(props: { team: Board }) {
  const team = () => props.team;
  const lead = () => world.sessions[team().lead];
  const here = () => team().members.filter((one) => one.status !== "shutdown").length;
  const done = () => team().tasks.filter((one) => one.status === "completed").length;
  return (
    <header class="head">
      <a class="back" href="/" aria-label="Back">
        <Icon name="back" />
      </a>
      <div class="title">
        <h1 id="team-name">
          <Icon name="users" />
          {visible(team().team)}
        </h1>
        <p class="meta">
          <span class="status" data-tone={team().ended ? "rest" : "live"}>
            <span class="dot" aria-hidden="true" />
            {team().ended ? `ended ${ago(team().ended, now())} ago` : "live"}
          </span>
          <span>
            led by <a href={`/session/${team().lead}`}>{lead()?.title ?? lead()?.agent ?? "its lead"}</a>
          </span>
          <span>{here() === 1 ? "1 member" : `${here()} members`}</span>
          <span>
            {done()} of {team().tasks.length} tasks done
          </span>
          <Show when={team().usage.cost_usd}>{(cost) => <span>{money(cost())}</span>}</Show>
        </p>
        <Show when={team().description}>
          <p class="about" dir="auto">
            {visible(team().description ?? "")}
          </p>
        </Show>
      </div>
      <Show when={!team().ended && may("participant")}>
        <Shutdown team={team().id} />
      </Show>
    </header>
  );
}

/** A request to the lead, which may refuse it: said as what it is. */
function Shutdown(props: { team: string }) {
  const [open, setOpen] = createSignal(false);
  const [busy, setBusy] = createSignal(false);
  const [reason, setReason] = createSignal("");
  // kept until it is known to have arrived, so that it is sent once
  let id = newCommandId();
  async function ask(event: Event): Promise<void> {
    event.preventDefault();
    setBusy(true);
    try {
      await connection.call("team.shutdown", { team: props.team, id, ...(reason().trim() && { reason: reason().trim() }) });
      id = newCommandId();
      setOpen(false);
      setReason("");
      say("The lead has been asked to shut the team down. The board shows what it does.");
    } catch (error) {
      say(error);
    } finally {
      setBusy(false);
    }
  }
  return (
    <div class="shutdown">
      <button type="button" aria-expanded={open()} onClick={() => setOpen(!open())}>
        <Icon name="stop" />
        Request shutdown
      </button>
      <Show when={open()}>
        <form
          class="panel"
          onSubmit={(event) => void ask(event)}
          onKeyDown={(event) => event.key === "Escape" && setOpen(false)}
        >
          <p>The lead gets this as a request of yours. It asks its members to finish, and may refuse.</p>
          <label>
            Reason
            <input
              ref={(place) => queueMicrotask(() => place.focus())}
              maxlength="2000"
              placeholder="optional"
              value={reason()}
              onInput={(event) => setReason(event.currentTarget.value)}
            />
          </label>
          <button class="primary" disabled={busy()}>
            Send the request
          </button>
        </form>
      </Show>
    </div>
  );
}

function Asked(props: { ask: AskRecord; team: Board }) {
  return (
    <div class="asked-by">
      <p class="who">
        <Icon name="users" />
        {visible(askerOf(props.ask, props.team))}
        <a href={`/session/${props.ask.session}`}>{world.sessions[props.ask.session]?.title ?? "its session"}</a>
      </p>
      <AskCard record={props.ask} />
    </div>
  );
}

function Members(props: { team: Board }) {
  return (
    <section aria-labelledby="team-members">
      <h2 id="team-members">Members</h2>
      <Show when={props.team.members.length > 0} fallback={<p class="hint">Nobody has joined yet.</p>}>
        <ul class="members">
          <For each={props.team.members}>{(member) => <OneMember member={member} team={props.team} />}</For>
        </ul>
      </Show>
      <Show when={props.team.rest.members}>{(more) => <p class="hint">{more()} more are not shown.</p>}</Show>
    </section>
  );
}

const TONES: Record<Member["status"], string> = { active: "busy", idle: "rest", shutdown: "rest" };

function OneMember(props: { member: Member; team: Board }) {
  const member = () => props.member;
  const task = () => currentTask(member(), props.team.tasks);
  const asks = () => openAsks().filter((ask) => askerOf(ask, props.team) === member().name && props.team.sessions.includes(ask.session));
  return (
    <li class="member" data-status={member().status}>
      <p class="top">
        <b>{visible(member().name)}</b>
        <Show
          when={asks().length === 0}
          fallback={
            <span class="status" data-tone="ask">
              <span class="dot" aria-hidden="true" />
              waits for you
            </span>
          }
        >
          <span class="status" data-tone={TONES[member().status]}>
            <span class="dot" aria-hidden="true" />
            {member().status === "shutdown" ? "shut down" : member().status}
          </span>
        </Show>
      </p>
      <p class="about">
        <span>{member().kind ?? "teammate"}</span>
        <Show when={member().type}>{(type) => <span>{visible(type())}</span>}</Show>
        <Show when={member().model}>{(model) => <span>{visible(model())}</span>}</Show>
      </p>
      <Show when={task()} fallback={<p class="doing none">no task in progress</p>}>
        {(one) => (
          <p class="doing" dir="auto">
            <span class="number">#{one().id}</span> {visible(one().active_form ?? one().subject ?? "")}
          </p>
        )}
      </Show>
      <p class="used">
        <span>{count(tokensIn(member().usage) + (member().usage?.output ?? 0))} tokens</span>
        <Show when={member().usage?.cost_usd}>{(cost) => <span>{money(cost())}</span>}</Show>
        <a href={`/session/${member().session ?? props.team.lead}`}>{member().session ? "its session" : "in the lead's session"}</a>
      </p>
    </li>
  );
}

function Costs(props: { team: Board }) {
  const lead = () => world.sessions[props.team.lead];
  return (
    <section aria-labelledby="team-costs">
      <h2 id="team-costs">Used</h2>
      <div class="wide-table" tabindex="0" role="region" aria-labelledby="team-costs">
        <table>
          <thead>
            <tr>
              <th scope="col">Member</th>
              <th scope="col">Model</th>
              <th scope="col">Tokens in</th>
              <th scope="col">Tokens out</th>
              <th scope="col">Cost</th>
            </tr>
          </thead>
          <tbody>
            <For each={props.team.members}>
              {(member) => (
                <tr>
                  <th scope="row">{visible(member.name)}</th>
                  <td>{visible(member.model ?? "")}</td>
                  <td>{count(tokensIn(member.usage))}</td>
                  <td>{count(member.usage?.output ?? 0)}</td>
                  <td>{member.usage?.cost_usd == null ? "" : money(member.usage.cost_usd)}</td>
                </tr>
              )}
            </For>
          </tbody>
          <tfoot>
            <tr>
              <th scope="row">All members</th>
              <td />
              <td>{count(tokensIn(props.team.usage))}</td>
              <td>{count(props.team.usage.output ?? 0)}</td>
              <td>{props.team.usage.cost_usd == null ? "" : money(props.team.usage.cost_usd)}</td>
            </tr>
            <Show when={lead()}>
              {(state) => (
                <tr class="soft">
                  <th scope="row">The lead's session</th>
                  <td>{visible(state().model ?? "")}</td>
                  <td>{count(tokensIn(state().usage))}</td>
                  <td>{count(state().usage.output ?? 0)}</td>
                  <td>{state().cost_usd ? money(state().cost_usd ?? 0) : ""}</td>
                </tr>
              )}
            </Show>
          </tfoot>
        </table>
      </div>
      <p class="hint">The lead's session stands by itself: it may count its subagents too.</p>
    </section>
  );
}
