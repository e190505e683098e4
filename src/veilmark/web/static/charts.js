// Charts: the server's picture stands there already; Vega, where it loads, takes its place and answers to the pointer.
import { get } from "./fetch.js";

export async function drawCharts() {
  const places = [...document.querySelectorAll("[data-chart]")];
  if (!places.length) return;
  await load("/vega.js");
  for (const place of places) draw(place).catch((error) => console.warn("The chart stays a picture:", error.message));
}

/** Draw a Vega-Lite chart into an element; also for charts that pages make themselves. */
export async function embed(element, spec) {
  if (!window.vegaEmbed) await load("/vega.js");
  // `ast` makes Vega interpret expressions, which the page's policy allows, rather than compile them, which it does not.
  const options = { ast: true, actions: false, defaultStyle: false, renderer: "canvas", tooltip: { disableDefaultStyle: true } };
  return window.vegaEmbed(element, spec, options);
}

async function draw(place) {
  const spec = await get(place.dataset.chart);
  const canvas = document.createElement("div");
  await embed(canvas, spec);
  canvas.querySelector("canvas")?.setAttribute("role", "img");
  canvas.querySelector("canvas")?.setAttribute("aria-label", place.querySelector("img").alt);
  place.querySelector("img").replaceWith(canvas);
}

function load(url) {
  return new Promise((done, fail) => {
    const script = document.createElement("script");
    Object.assign(script, { src: url, type: "module", onload: done, onerror: fail });
    document.head.append(script);
  });
}
