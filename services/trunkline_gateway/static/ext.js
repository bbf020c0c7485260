// The frame around an extension's pages. They are in a sandbox: nothing of theirs reaches this page.
"use strict";

const $ = (id) => document.getElementById(id);

async function show() {
  const extension = location.pathname.split("/")[2], token = sessionStorage.getItem("token");
  const headers = { "Content-Type": "application/json", ...token && { Authorization: `Bearer ${token}` } };
  const answer = await fetch("/api/v1/extension.page", { method: "POST", headers, body: JSON.stringify({ extension }) });
  const said = await answer.json();
  $("title").textContent = answer.ok ? said.title : extension;
  if (!answer.ok) {
    $("state").textContent = answer.status === 401 ? "Sign in first: open the app." : said.detail;
    return;
  }
  document.title = `Trunkline: ${said.title}`;
  const path = location.hash.slice(1);
  $("frame").src = said.path + (/^[\w.-]+(\/[\w.-]+)*$/.test(path) ? path : "");
  $("frame").hidden = false;
}

show().catch((error) => { $("state").textContent = error.message; });
