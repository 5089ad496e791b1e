// Points in a plane, drawn on a canvas; where their labels are single signs, such as emoji, these are drawn.
import { data, h } from "../dom.js";

const REACH = 18; // how near the pointer has to be, in pixels
const EDGE = 22;
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
const graphemes = new Intl.Segmenter("en", { granularity: "grapheme" });

const isSign = (label) =>
  label !== null && label.length <= 24 && !/^[\x00-\x7f]*$/.test(label) && [...graphemes.segment(label)].length === 1;

/** The points as a picture. `series`: number of the colour of each database; `open`: what a click on a point does. */
export function scatter(points, { series, summary, open, signal }) {
  const canvas = h("canvas", { role: "application", "aria-label": summary, tabIndex: 0 });
  const tip = h("div", { class: "tip", hidden: true });
  const told = h("div", { class: "hush", role: "status" });
  const node = h("div", { class: "map" }, canvas, tip, told);
  const hidden = new Set();
  const signs = points.length > 0 && points.filter(({ label }) => isSign(label)).length > points.length / 2;
  const xs = points.map(({ x }) => x);
  const ys = points.map(({ y }) => y);
  const [left, right, low, high] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
  let places = [];
  let at = -1; // the point that is lit

  function place() {
    const [width, height] = [canvas.clientWidth - 2 * EDGE, canvas.clientHeight - 2 * EDGE];
    places = points.map(({ x, y }) => [
      EDGE + ((x - left) / (right - left || 1)) * width,
      EDGE + (1 - (y - low) / (high - low || 1)) * height,
    ]);
  }

  function draw(lit = -1) {
    const scale = window.devicePixelRatio || 1;
    canvas.width = canvas.clientWidth * scale;
    canvas.height = canvas.clientHeight * scale;
    const context = canvas.getContext("2d");
    context.scale(scale, scale);
    const style = getComputedStyle(node);
    const colours = [1, 2, 3, 4].map((n) => swatch(node, n));
    context.textAlign = "center";
    context.textBaseline = "middle";
    const glyphs = style.getPropertyValue("--glyph");
    const paint = (i) => {
      const point = points[i];
      if (hidden.has(point.database)) return;
      const big = i === lit;
      const [x, y] = places[i];
      if (signs && isSign(point.label)) {
        context.globalAlpha = big || lit < 0 ? 1 : 0.85;
        context.font = `${big ? 30 : 15}px ${glyphs}`;
        context.fillText(point.label, x, y);
        return;
      }
      context.globalAlpha = big ? 1 : 0.6;
      context.fillStyle = colours[series(point.database) - 1];
      context.beginPath();
      context.arc(x, y, big ? 7 : 3.2, 0, 2 * Math.PI);
      context.fill();
    };
    for (let i = 0; i < points.length; i++) if (i !== lit) paint(i);
    if (lit >= 0) paint(lit);
  }

  function nearest(event) {
    const box = canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    let best = -1;
    let least = REACH ** 2;
    places.forEach(([px, py], i) => {
      const far = (px - x) ** 2 + (py - y) ** 2;
      if (far < least && !hidden.has(points[i].database)) [best, least] = [i, far];
    });
    return best;
  }

  /** The point that an arrow leads to: the nearest that lies more that way than aside; without one, that at the middle. */
  function neighbour(from, [dx, dy]) {
    const [x, y] = from < 0 ? [canvas.clientWidth / 2, canvas.clientHeight / 2] : places[from];
    let best = -1;
    let least = Infinity;
    places.forEach(([px, py], i) => {
      if (i === from || hidden.has(points[i].database)) return;
      const along = (px - x) * dx + (py - y) * dy;
      const aside = Math.abs((px - x) * dy) + Math.abs((py - y) * dx);
      const far = Math.hypot(along, aside);
      if ((from < 0 || (along > 0 && along >= aside)) && far < least) [best, least] = [i, far];
    });
    return best;
  }

  function point(i) {
    at = i;
    tip.hidden = i < 0;
    draw(i);
    if (i < 0) return;
    const { id, label, database } = points[i];
    tip.replaceChildren(data(label ?? id, 60), h("span", { class: "soft" }, ` ${database}`));
    const [x, y] = places[i];
    tip.style.left = `${Math.min(x + 12, canvas.clientWidth - 140)}px`;
    tip.style.top = `${Math.max(y - 40, 4)}px`;
  }

  canvas.addEventListener("pointermove", (event) => point(nearest(event)));
  canvas.addEventListener("pointerleave", () => point(-1));
  canvas.addEventListener("click", (event) => {
    const i = nearest(event);
    if (i >= 0) open(points[i]);
  });
  canvas.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const lit = at >= 0 && !hidden.has(points[at].database);
    if (event.key === "Enter" && lit) open(points[at]);
    else if (event.key === "Escape") point(-1);
    else if (ARROWS[event.key]) {
      const next = neighbour(lit ? at : -1, ARROWS[event.key]);
      if (next >= 0) point(next);
      if (next >= 0) told.textContent = `${points[next].label ?? points[next].id}, ${points[next].database}`;
    } else return;
    event.preventDefault();
  });
  canvas.addEventListener("blur", () => point(-1));
  const renew = () => {
    place();
    draw(at);
  };
  const watch = new ResizeObserver(renew);
  watch.observe(canvas);
  window.addEventListener("ccq-theme", renew, { signal });
  signal.addEventListener("abort", () => watch.disconnect());

  /** Show the points of a database, or leave them out. */
  function toggle(database, shown) {
    if (shown) hidden.delete(database);
    else hidden.add(database);
    draw();
  }

  return { node, toggle };
}

/** The colour of a series, as the style sheet has it now. */
function swatch(within, n) {
  const probe = h("span", { class: `dot-${n}` });
  within.append(probe);
  const colour = getComputedStyle(probe).backgroundColor;
  probe.remove();
  return colour;
}
