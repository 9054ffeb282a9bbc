// What htmx leaves to the page: when it looked last, what changed, and whether anybody answers.
"use strict";

const byId = (id) => document.getElementById(id);
const now = () => new Date().toLocaleTimeString();

// A page that nobody sees asks for nothing: calls to an account have limits, and some cost money.
document.addEventListener("htmx:beforeRequest", (event) => {
  if (document.hidden && event.detail.requestConfig.verb === "get") event.preventDefault();
});

const atEnd = (log) => log.scrollTop + log.clientHeight >= log.scrollHeight - 4;
let followed = true;
let scrolled = 0;
document.addEventListener("htmx:beforeSwap", () => {
  const log = byId("log-lines");
  if (log) [followed, scrolled] = [atEnd(log), log.scrollTop];
});
document.addEventListener("htmx:afterSwap", (event) => {
  const part = event.detail.target;
  const log = part.querySelector("#log-lines");
  if (log) log.scrollTop = followed ? log.scrollHeight : scrolled;
  if (part.dataset.news && part.dataset.known) byId("news").textContent = `Changed: ${part.dataset.news}, ${now()}`;
  part.dataset.known = "yes";
});

const tell = (text) => {
  const gone = byId("gone");
  gone.hidden = !text;
  if (gone.textContent !== text) gone.textContent = text;
};
document.addEventListener("htmx:afterRequest", (event) => {
  if (!event.detail.successful) return;
  tell("");
  byId("looked").textContent = `Looked at ${now()}`;
});
document.addEventListener("htmx:sendError", () => tell("No answer: `slipway ui` has ended. Start it again, and open its new address."));
document.addEventListener("htmx:responseError", (event) => {
  const status = event.detail.xhr.status;
  tell(status === 403 ? event.detail.xhr.responseText : `\`slipway ui\` failed (${status}). Its terminal has the reason.`);
});
