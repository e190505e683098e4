// Comparing pairs: words and weights follow the sliders. A slider that moves is a judgement; one left open follows the rest.
import { post } from "./fetch.js";

const PAUSE = 120;
const slider = (row) => row.querySelector("[type=range]");
const opener = (row) => row.querySelector("[type=checkbox]");

const form = document.querySelector("form[data-judge]");
if (form) follow(form);

function follow(form) {
  const words = JSON.parse(form.dataset.words);
  const place = document.querySelector("[data-judged]");
  const rows = [...form.querySelectorAll("[data-pair]")];
  let timer, asked = 0;

  form.addEventListener("input", (event) => {
    const row = event.target.closest("[data-pair]");
    if (row && event.target.type === "range") opener(row).checked = false;
    if (!row && event.target.name !== "scale") return;
    for (const each of rows) say(each, words);
    clearTimeout(timer);
    timer = setTimeout(judge, PAUSE);
  });
  // Sliders may have moved before this script was there, or be as the browser remembers them.
  const moved = rows.filter((row) => slider(row).value !== slider(row).defaultValue);
  for (const row of moved) opener(row).checked = false;
  for (const row of rows) say(row, words);
  if (moved.length) judge();
  else suggest(rows, place, words);

  async function judge() {
    const number = ++asked;
    const answer = await post(form.dataset.judge, new FormData(form));
    const text = await answer.text();
    if (number !== asked || !answer.ok) return;
    place.innerHTML = text;
    suggest(rows, place, words);
  }
}

/** The judgement of a row in words, for eyes and for screen readers. */
function say(row, words) {
  const open = opener(row).checked;
  const [left, right] = [...row.querySelectorAll(".ends > span:not(.unseen)")].map((e) => e.textContent);
  const step = +slider(row).value, times = Math.abs(step) + 1;
  const judged = step === 0 ? words[0] : `${step < 0 ? left : right}: ${words[times - 1]}, ${times} times`;
  const said = open ? `left open; the others make it ${judged}` : judged;
  row.classList.toggle("open", open);
  row.querySelector("[data-said]").textContent = said;
  slider(row).setAttribute("aria-valuetext", said);
}

/** Sliders of open pairs stand where the weights put them. */
function suggest(rows, place, words) {
  const weights = [...place.querySelectorAll("[data-weight]")].map((e) => +e.dataset.weight);
  if (!weights.length) return;
  for (const row of rows.filter((r) => opener(r).checked)) {
    const [i, j] = row.dataset.pair.split(" ").map(Number);
    const ratio = weights[i] / weights[j];
    const step = Math.min(8, Math.round(Math.max(ratio, 1 / ratio)) - 1);
    slider(row).value = ratio > 1 ? -step : step;
    say(row, words);
  }
}
