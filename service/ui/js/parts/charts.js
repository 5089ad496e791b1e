// A line, and strips of shades.
import { svg } from "../dom.js";

const [WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT] = [520, 210, 46, 26, 10, 12];

/** A curve of values, one after another, as a picture with a text in its place. */
export function curve(values, title) {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const span = high - low || 1;
  const x = (i) => LEFT + (i / Math.max(values.length - 1, 1)) * (WIDTH - LEFT - RIGHT);
  const y = (value) => TOP + (1 - (value - low) / span) * (HEIGHT - TOP - BOTTOM);
  const ticks = [low, low + span / 2, high].map((value) => [
    svg("line", { class: "grid", x1: LEFT, x2: WIDTH - RIGHT, y1: y(value), y2: y(value) }),
    svg("text", { x: LEFT - 8, y: y(value) + 4, "text-anchor": "end" }, value.toFixed(3)),
  ]);
  const steps = [...new Set([0, Math.floor((values.length - 1) / 2), values.length - 1])];
  const under = steps.map((i) => svg("text", { x: x(i), y: HEIGHT - 7, "text-anchor": "middle" }, i + 1));
  const points = values.map((value, i) => `${x(i).toFixed(1)},${y(value).toFixed(1)}`).join(" ");
  const end = values.length - 1;
  return svg(
    "svg",
    { class: "chart", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": title },
    ticks,
    under,
    svg("polyline", { class: "line", points }),
    svg("circle", { class: "dot", r: 4, cx: x(end), cy: y(values[end]) }),
  );
}

/** A strip of shades, the darker the more: one cell for each count. */
export function strip(counts) {
  const canvas = document.createElement("canvas");
  canvas.className = "strip";
  canvas.width = counts.length;
  canvas.height = 1;
  canvas.setAttribute("aria-hidden", "true");
  const most = Math.max(...counts, 1);
  const context = canvas.getContext("2d");
  context.fillStyle = "#6676e0";
  counts.forEach((count, i) => {
    context.globalAlpha = count === 0 ? 0 : 0.15 + 0.85 * Math.sqrt(count / most);
    context.fillRect(i, 0, 1, 1);
  });
  return canvas;
}
