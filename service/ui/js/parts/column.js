// The results of one search, page by page: a column beside those of other databases.
import { at, post } from "../api.js";
import { curl } from "../curl.js";
import { data, h } from "../dom.js";
import { described, problemNote } from "../problems.js";
import { attempt, done } from "../toasts.js";
import { card, shares } from "./cards.js";

/**
 * A column. `body`: the search, whose database it is headed by. `metric`: what it ranks by. `onProblem`: told of a search
 * that was refused; what it gives is shown in place of the problem. `onNothing`: gives what is shown where nothing is
 * found, or undefined.
 */
export function column({ collection, body, metric, series, signal, onProblem, onNothing }) {
  const cards = h("ol", { class: "cards" });
  const facts = h("span", { class: "small soft" });
  const more = h("button", { type: "button", hidden: true }, "More");
  const place = h("div", { class: "stack" }, cards, more);
  const path = at("collections", collection, "search");
  const copy = h("button", { type: "button", class: "small quiet" }, "Copy as curl");
  copy.addEventListener("click", () =>
    attempt(async () => {
      await navigator.clipboard.writeText(curl(path, body));
      done("The search is on the clipboard, as a curl command.");
    }),
  );
  const node = h(
    "section",
    {
      class: "column",
      "aria-label": `Results in ${body.database}`,
      "aria-busy": "true",
      data: { database: body.database, series },
    },
    h(
      "div",
      { class: "column-head" },
      h("h2", {}, h("span", { class: `dot-${series}`, "aria-hidden": "true" }), data(body.database)),
      h("span", { class: "row" }, facts, copy),
    ),
    place,
  );
  let cursor = null;

  async function load() {
    const reply = await post(path, cursor ? { ...body, cursor } : body, { signal });
    const long = shares(reply.results, metric);
    cards.append(...reply.results.map((hit, i) => card(collection, hit, long[i])));
    cursor = reply.next_cursor ?? null;
    more.hidden = cursor === null || reply.results.length === 0;
    facts.textContent = `${cards.children.length} in ${reply.took_ms.toFixed(reply.took_ms < 10 ? 2 : 0)} ms`;
    if (cards.children.length === 0) place.replaceChildren(onNothing?.() ?? h("p", { class: "soft" }, "Nothing found here."));
  }

  more.addEventListener("click", async () => {
    more.disabled = true;
    const before = cards.children.length;
    await attempt(load);
    more.disabled = false;
    cards.children[before]?.querySelector("a").focus();
  });
  load()
    .catch((error) => {
      if (error.name !== "AbortError") place.replaceChildren(onProblem?.(error) ?? problemNote(described(error)));
    })
    .finally(() => node.removeAttribute("aria-busy"));
  return node;
}
