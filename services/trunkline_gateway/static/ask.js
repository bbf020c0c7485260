// The page of a link that decides one ask. Text from agents is only ever shown as text.
"use strict";

const $ = (id) => document.getElementById(id);
const code = new URLSearchParams(location.hash.slice(1)).get("code") ?? "";

async function post(path, body) {
  const answer = await fetch(path, {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ code, ...body }),
  });
  const said = await answer.json();
  if (!answer.ok) throw new Error(said.detail);
  return said;
}

async function decide(behaviour) {
  $("buttons").replaceChildren();
  $("state").textContent = "…";
  try {
    await post("/a/decide", { behaviour });
    $("state").textContent = behaviour === "allow" ? "Allowed." : "Denied.";
  } catch (error) {
    $("state").textContent = error.message;
  }
}

async function show() {
  try {
    const ask = await post("/a/look", {});
    $("name").textContent = `${ask.name}: ${ask.session_title}`;
    $("about").textContent = ask.about;
    $("input").textContent = ask.input;
    if (ask.status !== "open") { $("state").textContent = `It is ${ask.status} already.`; return; }
    for (const behaviour of ask.behaviours) {
      const button = document.createElement("button");
      button.textContent = behaviour === "allow" ? "Allow" : "Deny";
      button.onclick = () => decide(behaviour);
      $("buttons").append(button);
    }
  } catch (error) {
    $("state").textContent = error.message;
  }
}

show();
