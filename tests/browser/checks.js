// What is wrong with the page for somebody who uses it; a list of texts.
() => {
  const faults = [];
  const seen = (e) => { const r = e.getBoundingClientRect(); const s = getComputedStyle(e); return r.width > 0 && r.height > 0 && s.visibility !== "hidden"; };
  const name = (e) => e.tagName.toLowerCase() + (e.id ? "#" + e.id : "") + " " + (e.textContent || "").trim().slice(0, 40);
  const text = (ids) => (ids || "").split(/\s+/).filter(Boolean).map((i) => document.getElementById(i)?.textContent ?? "").join(" ").trim();

  for (const e of document.querySelectorAll("input:not([type=hidden]), select, textarea")) {
    const labels = [...(e.labels || [])].map((l) => l.textContent.trim()).join(" ");
    if (!labels && !e.getAttribute("aria-label") && !text(e.getAttribute("aria-labelledby"))) faults.push("no label: " + e.outerHTML.slice(0, 80));
  }
  for (const e of document.querySelectorAll("button, a[href], summary")) {
    const said = e.textContent.trim() || e.getAttribute("aria-label") || e.querySelector("img")?.alt;
    if (!said) faults.push("no text: " + e.outerHTML.slice(0, 80));
  }
  for (const e of document.querySelectorAll("img")) if (!e.hasAttribute("alt")) faults.push("no alt: " + e.src);
  for (const e of document.querySelectorAll("[role=region], nav, section")) {
    if (!e.getAttribute("aria-label") && !text(e.getAttribute("aria-labelledby"))) faults.push("no name: " + e.outerHTML.slice(0, 80));
  }
  const ids = [...document.querySelectorAll("[id]")].map((e) => e.id);
  for (const id of new Set(ids)) if (ids.filter((i) => i === id).length > 1) faults.push("twice: #" + id);
  for (const attribute of ["for", "aria-describedby", "aria-labelledby", "aria-controls"])
    for (const e of document.querySelectorAll(`[${attribute}]`))
      for (const id of e.getAttribute(attribute).split(/\s+/)) if (!document.getElementById(id)) faults.push(`${attribute} leads nowhere: ${id}`);
  let level = 0;
  const heads = [...document.querySelectorAll("h1, h2, h3, h4, h5, h6")].filter(seen);
  if (heads.filter((h) => h.tagName === "H1").length !== 1) faults.push("not one h1");
  for (const h of heads) { const n = +h.tagName[1]; if (n > level + 1) faults.push("heading skips: " + name(h)); level = n; }
  for (const landmark of ["main", "header"]) if (document.querySelectorAll(landmark).length !== 1) faults.push("not one " + landmark);
  if (!document.documentElement.lang) faults.push("no language");
  if (!document.title) faults.push("no title");
  if (document.documentElement.scrollWidth > innerWidth + 1) {
    const wide = [...document.querySelectorAll("main *, header *")].filter((e) => seen(e) && e.getBoundingClientRect().right > innerWidth + 1 && !e.closest(".scroll, nav ul"));
    faults.push("wider than the screen: " + (wide.length ? name(wide[0]) : "?"));
  }

  // Contrast of texts with what is behind them.
  const parse = (c) => { const m = c.match(/[\d.]+/g).map(Number); return m.length < 4 ? [...m, 1] : m; };
  const light = ([r, g, b]) => [r, g, b].map((v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4).reduce((s, v, i) => s + v * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (e) => { for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor); if (c[3] > 0.99) return c; } return [255, 255, 255, 1]; };
  for (const e of document.querySelectorAll("body *")) {
    if (![...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim()) || !seen(e) || e.closest("[disabled], .unseen, .skip")) continue;
    const style = getComputedStyle(e), large = parseFloat(style.fontSize) >= 24 || (parseFloat(style.fontSize) >= 18.66 && +style.fontWeight >= 700);
    const [a, b] = [light(parse(style.color)), light(behind(e))].sort((x, y) => y - x);
    if ((a + 0.05) / (b + 0.05) < (large ? 3 : 4.5)) faults.push("contrast: " + name(e));
  }
  return faults;
}
