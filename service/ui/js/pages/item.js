// One item: its payload, and its neighbours in every database.
import { at, del, get } from "../api.js";
import { confirm } from "../dialogs.js";
import { data, h } from "../dom.js";
import { alikeLink } from "../parts/cards.js";
import { column } from "../parts/column.js";
import { facts, pageHead, panel } from "../parts/fields.js";
import { seriesOf } from "../parts/insight.js";
import { imageLink, payloadText, picture, titleOf } from "../payload.js";
import { go, link } from "../router.js";
import { may } from "../session.js";
import { attempt, done } from "../toasts.js";

const NEIGHBOURS = 8;

export async function page({ path: [, collection, , id], signal }) {
  const address = at("collections", collection, "items", id);
  const [item, info] = await Promise.all([get(address, { signal }), get(at("collections", collection), { signal })]);
  const model = await get(at("models", info.model), { signal });
  const all = Object.keys(info.databases ?? {});
  const title = titleOf(item);
  const remove = h("button", { type: "button", class: "danger" }, "Delete");
  remove.addEventListener("click", async () => {
    if (
      !(await confirm({
        title: "Delete this item?",
        detail: ["Its codes and its payload are gone for good: ", data(id, 100)],
      }))
    )
      return;
    const deleted = await attempt(() => del(address, { headers: { "If-Match": `"${item.version}"` } }));
    if (!deleted) return;
    done("The item was deleted.");
    go(link(["search"], { collection }));
  });
  const frame = picture(item);
  frame.classList.add("item-picture");
  const search = { query_id: id, limit: NEIGHBOURS };
  const columns = ordered(all, item.databases).map((database) =>
    column({
      collection,
      body: { ...search, database },
      metric: model.metric,
      series: seriesOf(all)(database),
      signal,
    }),
  );
  const node = h(
    "div",
    { class: "page" },
    pageHead(data(title, 160), {
      crumbs: [h("a", { href: link(["collections", collection]) }, data(collection)), " / ", h("a", { href: link(["collections", collection, "items"]) }, "items")],
      actions: [
        h("a", { class: "button", href: alikeLink(collection, id) }, "Search with it"),
        may("write", collection) && remove,
      ].filter(Boolean),
    }),
    h(
      "div",
      { class: "two" },
      h(
        "div",
        { class: "panel" },
        frame,
        facts([
          ["Id", h("code", {}, data(id, 600)), true],
          ["Databases", data(item.databases.join(", ")), true],
          ["Version", item.version, true],
        ]),
        imageLink(item.payload),
      ),
      panel("Payload", payloadText(item.payload)),
    ),
    h("h2", {}, "Neighbours"),
    h("div", { class: "columns" }, columns),
  );
  return { title, node };
}

/** Databases of other modalities than the item's first, then its own. */
function ordered(all, own) {
  const rank = (name) => (own.includes(name) ? (name === "pair" ? 2 : 1) : 0);
  return all.toSorted((a, b) => rank(a) - rank(b));
}
