// What every page has: progress of jobs, charts, and forms that cannot be sent twice.
import { watchJobs } from "./jobs.js";
import { drawCharts } from "./charts.js";

watchJobs();
drawCharts();

for (const form of document.querySelectorAll("form[method=post]")) {
  form.addEventListener("submit", () => {
    // After the form's fields are collected, so that the pressed button counts.
    setTimeout(() => form.querySelectorAll("button").forEach((button) => (button.disabled = true)));
  });
}
// A page that comes back from the browser's memory has its buttons again.
addEventListener("pageshow", () => document.querySelectorAll("button[disabled]").forEach((b) => (b.disabled = false)));
