// One collection: what it holds, its map and its codewords; its aliases; encoding it anew; deleting it.
import { at, del, get, post, put } from "../api.js";
import { confirm } from "../dialogs.js";
import { data, h } from "../dom.js";
import { bytes, count, plural } from "../format.js";
import { facts, field, pageHead, panel, pill, select } from "../parts/fields.js";
import { insight } from "../parts/insight.js";
import { watchLoading } from "../parts/loading.js";
import { go, link } from "../router.js";
import { may, mayAll } from "../session.js";
import { attempt, done } from "../toasts.js";
import { aliasesOf, KEEP } from "./collections.js";

export async function page({ path: [, name], signal }) {
  const info = await get(at("collections", name), { signal });
  const [{ aliases }, { models }] = await Promise.all([get("aliases", { signal }), get("models", { signal })]);
  watchLoading([info], signal);
  const databases = Object.keys(info.databases ?? {});
  const remove = h("button", { type: "button", class: "danger", on: { click: () => removal(info) } }, "Delete");
  const node = h(
    "div",
    { class: "page" },
    pageHead([data(info.name), " ", pill(info.state)], {
      crumbs: h("a", { href: "#/collections" }, "Collections"),
      actions: [
        h("a", { class: "button", href: link(["search"], { collection: info.name }) }, "Search"),
        h("a", { class: "button", href: link(["collections", info.name, "items"]) }, "Items"),
        may("admin", info.name) && remove,
      ].filter(Boolean),
    }),
    panel(
      "Contents",
      facts([
        ["Items", count(info.items)],
        ["Bytes an item", info.items ? (info.code_bytes / info.items).toFixed(1) : null],
        ["Codes in memory", bytes(info.code_bytes)],
        ...databases.map((database) => [["In ", data(database)], count(info.databases[database])]),
        ["Model", h("a", { href: link(["models", info.model]) }, data(info.model)), true],
        ["Keeps", KEEP[info.keep], true],
        ["Indexed keys", info.indexes.length > 0 ? data(info.indexes.join(", ")) : "none", true],
        ["Encoders", info.encoders && data(encoderNames(info.encoders)), true],
      ]),
    ),
    info.state === "ready" && insight(info.name, databases, signal),
    mayAll() && aliasPanel(info, aliasesOf(aliases, info.name)),
    mayAll() && info.keep !== "none" && reencoding(info, models),
  );
  return { title: info.name, node };
}

const encoderNames = (encoders) =>
  Object.entries(encoders)
    .map(([modality, name]) => `${modality}: ${name}`)
    .join(", ") || "none";

async function removal(info) {
  const detail = `Its ${plural(info.items ?? 0, "item")} are gone for good. Its model stays.`;
  if (!(await confirm({ title: "Delete this collection?", detail, typed: info.name }))) return;
  if (!(await attempt(() => del(at("collections", info.name))))) return;
  done("The collection was deleted.");
  go("#/collections");
}

function aliasPanel(info, aliases) {
  const input = h("input", { required: true, autocomplete: "off" });
  const again = () => go(link(["collections", info.name]), { replace: true });
  const submit = async (event) => {
    event.preventDefault();
    if (await attempt(() => put(at("aliases", input.value), { collection: info.name }))) again();
  };
  const remove = async (alias) => {
    if (await attempt(() => del(at("aliases", alias)))) again();
  };
  const list = aliases.map((alias) =>
    h(
      "li",
      { class: "row" },
      data(alias),
      h(
        "button",
        { type: "button", class: "small", on: { click: () => remove(alias) } },
        "Remove",
        h("span", { class: "hush" }, " ", data(alias)),
      ),
    ),
  );
  return panel(
    "Aliases",
    h("p", { class: "soft small" }, "Other names that lead here. One that leads to another collection is moved."),
    list.length > 0 && h("ul", { class: "stack" }, list),
    h(
      "form",
      { class: "form", on: { submit } },
      field("New alias", input),
      h("button", { type: "submit" }, "Let it lead here"),
    ),
  );
}

function reencoding(info, models) {
  const own = models.find(({ name }) => name === info.model);
  const alike = (one) => JSON.stringify(dims(one)) === JSON.stringify(dims(own));
  const others = models.filter((one) => one.name !== info.model && own && alike(one)).map(({ name }) => name);
  const text =
    "By another model of the same modalities and dimensions, from the features that are kept. It is searched and written to meanwhile.";
  if (others.length === 0) return panel("Encode anew", h("p", { class: "soft small" }, text, " There is none yet."));
  const model = select("model", others);
  const submit = async (event) => {
    event.preventDefault();
    await attempt(async () => {
      const job = await post(at("collections", info.name, "reencode"), { model: model.value });
      go(link(["jobs", job.id]));
    });
  };
  return panel(
    "Encode anew",
    h("p", { class: "soft small" }, text),
    h("form", { class: "form", on: { submit } }, field("Model", model), h("button", { type: "submit" }, "Start")),
  );
}

const dims = (model) => Object.entries(model.modalities).map(([name, { dim }]) => [name, dim]);
