// The release form: what the marks cost while one moves a slider, and a line of terms for each recipient.
import { post } from "./fetch.js";

const PAUSE = 500;

const form = document.querySelector("form[data-release]");
if (form) {
  const place = form.querySelector("[data-plan-here]"), state = form.querySelector("[data-plan-state]");
  for (const range of form.querySelectorAll("input[type=range]"))
    range.addEventListener("input", () => (range.nextElementSibling.value = range.value));
  form.recipients.addEventListener("input", () => termsFor(form));
  const waiting = place.querySelector("[data-plan-job]");
  const live = planner(form, place, state);
  if (waiting) live.follow(waiting.dataset.planJob);
  if ("live" in form.dataset) form.addEventListener("input", live.later);
}

function planner(form, place, state) {
  let timer, asked = 0, running = null;
  const stop = () => running && post(`/api/jobs/${running}/cancel`);

  async function follow(job, number = ++asked) {
    running = job;
    await over(job);
    if (number !== asked) return;
    running = null;
    const answer = await fetch(`${form.dataset.plan}?job=${job}`);
    place.innerHTML = await answer.text();
    state.textContent = "Up to date.";
  }

  async function plan() {
    const number = ++asked;
    stop();
    if (!form.recipients.value.trim()) return (state.textContent = "");
    state.textContent = "Working it out …";
    const answer = await post(form.dataset.try, new FormData(form));
    if (number !== asked) return;
    const box = document.createElement("div");
    box.innerHTML = answer.ok ? await answer.text() : "";
    const job = box.querySelector("[data-plan-job]")?.dataset.planJob;
    if (job) return follow(job, number);
    place.replaceChildren(...box.childNodes);
    state.textContent = answer.ok ? "" : "The server does not answer. Load the page again.";
  }

  return {
    follow,
    later: (event) => {
      if (event.target.name?.match(/^(agreement|contact|consent):/)) return;
      clearTimeout(timer);
      timer = setTimeout(plan, PAUSE);
    },
  };
}

/** Resolves when a job is over. */
function over(job) {
  return new Promise((done) => {
    const events = new EventSource(`/api/jobs/${job}/events`);
    const end = () => (events.close(), done());
    events.onmessage = (event) => JSON.parse(event.data).ended && end();
    events.onerror = () => events.readyState === EventSource.CLOSED && end();  // Else it connects again by itself.
  });
}

/** A line of fields for each name, in the order of the names; what was typed stays. */
function termsFor(form) {
  const all = form.querySelector("[data-all-terms]"), row = document.querySelector("[data-terms-row]");
  const names = [...new Set(form.recipients.value.split("\n").map((line) => line.trim()).filter(Boolean))];
  const known = new Map([...all.children].map((e) => [e.dataset.terms, e]));
  all.replaceChildren(...names.map((name, i) => numbered(known.get(name) ?? row.content.firstElementChild.cloneNode(true), name, i + 1)));
  form.querySelector("[data-no-terms]").hidden = names.length > 0;
}

function numbered(fields, name, number) {
  fields.dataset.terms = name;
  fields.querySelector("legend").textContent = name;
  for (const input of fields.querySelectorAll("input")) {
    const term = input.name.split(":")[0];
    input.name = `${term}:${name}`;
    input.previousElementSibling.htmlFor = input.id = `t-${term}-${number}`;
  }
  return fields;
}
