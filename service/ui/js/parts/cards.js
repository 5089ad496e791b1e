// Items: as tiles to look through, and as cards of results.
import { data, h } from "../dom.js";
import { firstFields, imageLink, payloadText, picture, titleOf } from "../payload.js";
import { link } from "../router.js";

export const itemLink = (collection, id) => link(["collections", collection, "items", id]);
export const alikeLink = (collection, id) => link(["search"], { collection, by: "item", item: id });

/** A tile; it leads to the items that are alike. */
export function tile(collection, item) {
  return h(
    "li",
    {},
    h(
      "a",
      { class: "tile", href: alikeLink(collection, item.id) },
      picture(item),
      h("span", { class: "title" }, data(titleOf(item), 120)),
    ),
  );
}

/** A result as a card; it leads to the items that are alike. `share`: how long its bar is, of 0 to 1. */
export function card(collection, hit, share) {
  const title = titleOf(hit);
  const bar = h("span", { class: "bar", "aria-hidden": "true" }, h("span"));
  bar.firstChild.style.width = `${(100 * share).toFixed(1)}%`;
  const score = h("span", {}, "score ", hit.score.toFixed(3));
  const more = payloadDetails(hit.payload);
  return h(
    "li",
    { class: "card" },
    h(
      "a",
      { class: "card-main", href: alikeLink(collection, hit.id) },
      picture(hit),
      h(
        "span",
        { class: "card-text" },
        h("span", { class: "title" }, data(title, 200)),
        title !== hit.id && h("span", { class: "id" }, data(hit.id, 120)),
        h("span", { class: "score" }, bar, score),
      ),
    ),
    payloadFields(hit.payload),
    h(
      "div",
      { class: "card-foot" },
      more,
      h("a", { href: itemLink(collection, hit.id) }, "Item", h("span", { class: "hush" }, " ", data(title, 80))),
    ),
  );
}

/** The first fields of a payload, to be read at a glance; nothing where there are none. */
function payloadFields(payload) {
  const fields = firstFields(payload);
  const entry = ([key, text]) => h("div", {}, h("dt", {}, data(key, 40)), h("dd", {}, data(text, 120)));
  return fields.length > 0 && h("dl", { class: "card-fields" }, fields.map(entry));
}

/** A payload that is unfolded when it is asked for. */
function payloadDetails(payload) {
  const details = h("details", {}, h("summary", {}, "Whole payload"));
  details.addEventListener("toggle", () => {
    if (details.open && details.children.length === 1) details.append(payloadText(payload), imageLink(payload) ?? "");
  });
  return details;
}

/** How long the bars of results are: cosines as they are, distances as shares of the largest. */
export function shares(hits, metric) {
  if (metric === "cosine") return hits.map(({ score }) => Math.min(1, Math.max(0.01, score)));
  const furthest = Math.max(...hits.map(({ distance }) => distance), 1e-9);
  return hits.map(({ distance }) => Math.max(0.02, 1 - (0.95 * distance) / furthest));
}
