// The hierarchy editor: what the levels look like while one types. (The style sheet shows the fields of the chosen kind.)
import { post } from "./fetch.js";

const PAUSE = 300;

const form = document.querySelector("form[data-preview]");
if (form.querySelector("[data-kind]")) edit(form);

function edit(form) {
  let timer, asked = 0;
  form.addEventListener("input", (event) => {
    if (event.target.closest("[name^='weight:']") || event.target.type === "file") return;
    clearTimeout(timer);
    timer = setTimeout(() => preview(form, ++asked, () => asked), PAUSE);
  });
}

async function preview(form, number, latest) {
  const content = new FormData(form);
  content.delete("file");
  const answer = await post(form.dataset.preview, content);
  const text = await answer.text();
  if (number === latest() && answer.ok) document.querySelector("[data-preview-here]").innerHTML = text;
}
