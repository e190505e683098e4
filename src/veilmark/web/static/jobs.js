// Progress of jobs, as the server tells it. The page is loaded again when a job is over: the server shows the result.
import { post } from "./fetch.js";

export function watchJobs() {
  for (const place of document.querySelectorAll("[data-job]")) watch(place, place.dataset.job);
}

function watch(place, id) {
  const events = new EventSource(`/api/jobs/${id}/events`);
  events.onmessage = (event) => {
    const job = JSON.parse(event.data);
    show(place, job);
    if (job.ended) {
      events.close();
      location.reload();
    }
  };
  place.querySelector("[data-cancel]")?.addEventListener("submit", (event) => {
    event.preventDefault();
    place.querySelector("[data-state]").textContent = "Stopping.";
    post(`/api/jobs/${id}/cancel`);
  });
}

function show(place, job) {
  const step = job.steps.findLast((s) => !s.done);
  const words = { queued: "Waiting for its turn.", running: step ? `${step.label} …` : "Running." };
  const state = place.querySelector("[data-state]");
  if (words[job.state] && state.textContent !== words[job.state]) state.textContent = words[job.state];
  const bar = place.querySelector("[data-progress]");
  if (step?.share == null) bar.removeAttribute("value");
  else bar.value = step.share;
  place.querySelector("[data-steps]").replaceChildren(
    ...job.steps.map((s) => Object.assign(document.createElement("li"), { textContent: s.label, className: s.done ? "done" : "" })),
  );
}
