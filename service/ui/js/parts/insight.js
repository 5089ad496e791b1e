// What is in a collection: the map of its items, and how its codewords are used.
import { at, get } from "../api.js";
import { data, h } from "../dom.js";
import { count, percent, plural } from "../format.js";
import { labelKey } from "../payload.js";
import { described, problemNote } from "../problems.js";
import { go } from "../router.js";
import { itemLink } from "./cards.js";
import { strip } from "./charts.js";
import { check, panel, table } from "./fields.js";
import { scatter } from "./scatter.js";

const SAMPLE = 2000;
const LISTED = 50;

/** Series numbers of databases, by which they have their colours. */
export const seriesOf = (databases) => (name) => (databases.indexOf(name) % 4) + 1;

/** Both panels of a collection, filled as soon as the API answers. */
export function insight(collection, databases, signal) {
  const map = panel("Map", h("p", { class: "soft" }, "…"));
  const usage = panel("Codewords in use", h("p", { class: "soft" }, "…"));
  fill(map, () => mapContent(collection, databases, signal), signal);
  fill(usage, () => usageContent(collection, signal), signal);
  return [map, usage];
}

async function fill(section, content, signal) {
  const heading = section.firstChild;
  section.setAttribute("aria-busy", "true");
  try {
    section.replaceChildren(heading, ...(await content()));
  } catch (error) {
    if (!signal.aborted) section.replaceChildren(heading, problemNote(described(error)));
  }
  section.removeAttribute("aria-busy");
}

async function mapContent(collection, databases, signal) {
  const { items } = await get(`${at("collections", collection, "items")}?limit=1`, { signal });
  if (items.length === 0) return [h("p", { class: "soft" }, "There are no items yet.")];
  const key = labelKey(items[0].payload);
  const label = key === null || key.includes(".") ? "" : `&label=${encodeURIComponent(key)}`;
  const { points, explained, rows } = await get(`${at("collections", collection, "map")}?sample=${SAMPLE}${label}`, {
    signal,
  });
  const series = seriesOf(databases);
  const shown = databases.filter((name) => points.some(({ database }) => database === name));
  const open = ({ id }) => go(itemLink(collection, id));
  const summary = `Map of ${plural(points.length, "code")} of ${collection}, in databases ${shown.join(", ")}`;
  const { node, toggle } = scatter(points, { series, summary, open, signal });
  const legend = shown.map((name) => {
    const box = check(
      "shown",
      name,
      [h("span", { class: `dot-${series(name)}`, "aria-hidden": "true" }), data(name)],
      true,
    );
    box.addEventListener("change", (event) => toggle(name, event.target.checked));
    return box;
  });
  const sampled = points.length < rows ? `${count(points.length)} of ${count(rows)} codes` : plural(rows, "code");
  return [
    h(
      "p",
      { class: "soft small" },
      "Each dot or sign is an item in one database, and a dot's colour says which. What is near on the map tends to be alike: ",
      `it flattens many dimensions to two, which show ${percent(explained[0] + explained[1])} of the differences. ${sampled}, placed by the codes that a search compares.`,
    ),
    h(
      "p",
      { class: "soft small" },
      "Click one to open its item. By keyboard: arrows go from one to the next, Enter opens, Escape lets go.",
    ),
    h("div", { class: "row", role: "group", "aria-label": "Databases on the map" }, legend),
    node,
    h(
      "details",
      {},
      h("summary", {}, "The points as a table"),
      listed(collection, points),
    ),
  ];
}

/** The points as a table, a page at a time. */
function listed(collection, points) {
  const place = h("div", { class: "stack" });
  const show = (from) => {
    const rows = points
      .slice(from, from + LISTED)
      .map(({ id, label, database, x, y }) => [
        h("a", { href: itemLink(collection, id) }, data(label ?? id, 60)),
        data(database),
        x.toFixed(3),
        y.toFixed(3),
      ]);
    const to = from + rows.length;
    const step = (text, there, able) =>
      h("button", { type: "button", disabled: !able, on: { click: () => turn(text, there) } }, text);
    place.replaceChildren(
      table("Points of the map", [["Item"], ["Database"], ["x", true], ["y", true]], rows),
      h(
        "div",
        { class: "row" },
        step("Previous", from - LISTED, from > 0),
        step("Next", to, to < points.length),
        h("span", { class: "small soft", role: "status" }, `${count(from + 1)}–${count(to)} of ${count(points.length)}`),
      ),
    );
  };
  const turn = (text, there) => {
    show(there);
    const buttons = [...place.querySelectorAll("button")];
    (buttons.find((one) => one.textContent === text && !one.disabled) ?? buttons.find((one) => !one.disabled))?.focus();
  };
  show(0);
  return place;
}

async function usageContent(collection, signal) {
  const { codebooks, rows } = await get(at("collections", collection, "usage"), { signal });
  if (rows === 0) return [h("p", { class: "soft" }, "There are no items yet.")];
  const lines = codebooks.map((counts, i) => {
    const used = counts.filter((n) => n > 0).length;
    const sorted = counts.toSorted((a, b) => b - a);
    return [String(i + 1), `${used} of ${counts.length}`, `${entropy(counts).toFixed(2)} of 8`, strip(sorted)];
  });
  return [
    h(
      "p",
      { class: "soft small" },
      `Over ${plural(rows, "code")}. The nearer to 8 bits, the more evenly the codewords are used, and the more a byte tells. Strips: codewords from the most used to the least.`,
    ),
    table("Codewords in use, by codebook", [["Codebook"], ["Used"], ["Bits"], ["Share of each codeword"]], lines),
  ];
}

/** Entropy of counts, in bits. */
function entropy(counts) {
  const total = counts.reduce((sum, n) => sum + n, 0);
  return counts.reduce((sum, n) => (n === 0 ? sum : sum - (n / total) * Math.log2(n / total)), 0);
}
