// The data model: its tree while one types, and the text of a file that is chosen.
import { post } from "./fetch.js";

const PAUSE = 300;

const form = document.querySelector("form[data-try]");
const text = form.querySelector("textarea");
let timer, asked = 0;

text.addEventListener("input", () => {
  clearTimeout(timer);
  timer = setTimeout(show, PAUSE);
});
form.querySelector("[type=file]").addEventListener("change", async (event) => {
  const file = event.target.files[0];
  if (!file || file.size > text.maxLength) return;
  text.value = await file.text();
  event.target.value = ""; // It is in the text now, and may be edited there.
  show();
});

async function show() {
  const number = ++asked;
  const content = new FormData();
  content.append("text", text.value);
  const answer = await post(form.dataset.try, content);
  const tree = await answer.text();
  if (number === asked && answer.ok) document.querySelector("[data-tree]").innerHTML = tree;
}
