// The Anonymize page: what the slider says, and the lattice to click in. Without scripts the list of nodes does the same.
import { get } from "./fetch.js";
import { embed } from "./charts.js";

for (const output of document.querySelectorAll("[data-shows]")) {
  const slider = document.getElementById(output.dataset.shows);
  slider.addEventListener("input", () => (output.value = slider.value));
}

const picking = document.querySelector("[data-pick]");
if (picking) explore(picking, document.querySelector("[data-node-here]"));

function explore(form, place) {
  let asked = 0;
  const show = async (levels) => {
    const number = ++asked;
    const url = new URL(location);
    url.searchParams.set("job", form.elements.job.value);
    url.searchParams.set("node", levels);
    history.replaceState(null, "", url);
    form.elements.node.value = levels; // Nothing is chosen where the list lacks it.
    place.setAttribute("aria-busy", "true");
    const answer = await fetch(`${form.dataset.pick}?job=${form.elements.job.value}&levels=${levels}`);
    const text = await answer.text();
    if (number !== asked) return;
    place.removeAttribute("aria-busy");
    if (!answer.ok) return location.reload();
    place.innerHTML = text;
    await drawNode(place);
  };
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (form.elements.node.value) show(form.elements.node.value).then(() => place.focus());
  });
  drawLattice(document.querySelector("[data-lattice]"), show);
  drawNode(place);
}

async function drawLattice(figure, show) {
  const image = figure.querySelector("img");
  const canvas = document.createElement("div");
  const { view } = await embed(canvas, await get(figure.dataset.lattice));
  canvas.querySelector("canvas")?.setAttribute("role", "img");
  canvas.querySelector("canvas")?.setAttribute("aria-label", image.alt);
  image.replaceWith(canvas);
  view.addEventListener("click", (_, item) => item?.datum?.levels && show(Array.from(item.datum.levels).join(",")));
}

async function drawNode(place) {
  const figure = place.querySelector("[data-spec]");
  if (figure) await embed(figure.querySelector("[data-draw]"), JSON.parse(figure.dataset.spec));
}
