// The items of a collection, in order of insertion, to be looked through.
import { at, get } from "../api.js";
import { data, h } from "../dom.js";
import { count } from "../format.js";
import { alikeLink, itemLink } from "../parts/cards.js";
import { empty, field, pageHead, select, table } from "../parts/fields.js";
import { firstFields, picture, titleOf } from "../payload.js";
import { go, link } from "../router.js";
import { attempt } from "../toasts.js";

const ROWS = 50;
const COLUMNS = [["Item"], ["Id"], ["Payload"], ["Databases"], ["Version", true], ["Neighbours"]];

/** `#/collections/{name}/items`; `#/items` is that of the first collection. */
export async function page({ path, signal }) {
  const { collections } = await get("collections", { signal });
  const names = collections.map(({ name }) => name);
  const name = path[1] ?? (collections.find(({ state }) => state === "ready") ?? collections[0])?.name;
  if (name === undefined) {
    const nothing = empty(h("p", {}, "There is no collection yet. ", h("a", { href: "#/collections" }, "Make one")));
    return { title: "Items", node: h("div", { class: "page" }, pageHead("Items"), nothing) };
  }
  const choice = select("collection", names, name);
  choice.addEventListener("change", () => go(link(["collections", choice.value, "items"])));
  const total = collections.find((one) => one.name === name)?.items;
  const node = h(
    "div",
    { class: "page" },
    pageHead("Items", {
      crumbs: [h("a", { href: link(["collections", name]) }, data(name)), " / items"],
      actions: [h("a", { class: "button", href: link(["search"], { collection: name }) }, "Search")],
    }),
    names.length > 1 && h("div", { class: "row" }, field("Collection", choice)),
    await listing(name, total, signal),
  );
  return { title: `Items of ${name}`, node };
}

async function listing(name, total, signal) {
  const path = at("collections", name, "items");
  const found = await get(`${path}?limit=${ROWS}`, { signal });
  if (found.items.length === 0) return empty(h("p", {}, data(name), " has no items yet."));
  const whole = table(`Items of ${name}, in order of insertion`, COLUMNS, found.items.map(cells(name)));
  const body = whole.querySelector("tbody");
  const facts = h("span", { class: "small soft", role: "status" });
  const more = h("button", { type: "button" }, "More");
  let cursor = null;
  const turned = ({ next_cursor }) => {
    cursor = next_cursor ?? null;
    more.hidden = cursor === null;
    const shown = body.children.length;
    facts.textContent = total >= shown ? `${count(shown)} of ${count(total)}` : count(shown);
  };
  turned(found);
  more.addEventListener("click", () =>
    attempt(async () => {
      more.disabled = true;
      try {
        const next = await get(`${path}?limit=${ROWS}&cursor=${encodeURIComponent(cursor)}`, { signal });
        const rows = [...table("", COLUMNS, next.items.map(cells(name))).querySelectorAll("tbody tr")];
        body.append(...rows);
        turned(next);
        rows[0]?.querySelector("a").focus();
      } finally {
        more.disabled = false;
      }
    }),
  );
  return h("div", { class: "stack" }, whole, h("div", { class: "row" }, more, facts));
}

/** What the row of an item says. */
const cells = (name) => (item) => {
  const title = titleOf(item);
  const fields = firstFields(item.payload).map(([key, text]) =>
    h("span", {}, h("span", { class: "soft" }, data(key, 40), ": "), data(text, 60)),
  );
  return [
    h("a", { class: "named", href: itemLink(name, item.id) }, picture(item), data(title, 60)),
    h("code", {}, data(item.id, 40)),
    h("span", { class: "fields" }, fields),
    data(item.databases.join(", ")),
    item.version,
    h("a", { class: "line", href: alikeLink(name, item.id) }, "Search with it", h("span", { class: "hush" }, ": ", data(title, 60))),
  ];
};
