// Search: by words, by an item that is there, or by features; databases side by side.
import { at, get } from "../api.js";
import { data, h } from "../dom.js";
import { plural } from "../format.js";
import { itemLink, tile } from "../parts/cards.js";
import { column } from "../parts/column.js";
import { empty, pageHead } from "../parts/fields.js";
import { watchLoading } from "../parts/loading.js";
import { seriesOf } from "../parts/insight.js";
import { searchForm } from "../parts/searchform.js";
import { picture, titleOf } from "../payload.js";
import { described, problemNote } from "../problems.js";
import { go, link } from "../router.js";
import { may } from "../session.js";
import { attempt } from "../toasts.js";

const TILES = 60;

export async function page({ query, signal }) {
  const asked = ["collections", "models", "limits", "aliases"].map((path) => get(path, { signal }));
  const [{ collections }, { models }, { encoders = {} }, { aliases }] = await Promise.all(asked);
  const node = h("div", { class: "page" }, pageHead("Search"));
  if (collections.length === 0) {
    node.append(noCollections());
    return { title: "Search", node };
  }
  const view = new Search({ collections, models, encoders, aliases }, node, signal);
  view.update(query);
  watchLoading(collections, signal);
  return { title: "Search", node, update: (next) => view.update(next) };
}

class Search {
  constructor(known, node, signal) {
    Object.assign(this, known); // collections, models, encoders, aliases
    this.signal = signal;
    this.form = null;
    this.formPlace = h("div");
    this.results = h("div", { class: "page", id: "results" });
    node.append(this.formPlace, this.results);
    this.running = new AbortController();
    signal.addEventListener("abort", () => this.running.abort());
  }

  /** Show what an address asks for. */
  update(query) {
    this.running.abort();
    this.running = new AbortController();
    const names = this.collections.map(({ name }) => name);
    const asked = query.get("collection");
    const wanted = this.aliases.find(({ alias }) => alias === asked)?.collection ?? asked;
    const collection =
      this.collections.find(({ name }) => name === wanted) ??
      this.collections.find(({ state }) => state === "ready") ??
      this.collections[0];
    const model = this.models.find(({ name }) => name === collection.model);
    this.form = searchForm({
      names,
      collection,
      model,
      encoders: this.encoders,
      query,
      before: this.form,
      submit: (address) => go(address),
    });
    const note = h("div", { class: "note", role: "status" }, "There is no collection ", data(wanted, 80), ".");
    note.append(" This is ", data(collection.name), ".");
    this.formPlace.replaceChildren(...(wanted !== null && wanted !== collection.name ? [note] : []), this.form.node);
    const { signal } = this.running;
    this.results.setAttribute("aria-busy", "true");
    this.run(collection, signal, model)
      .catch((error) => {
        if (error.name !== "AbortError") this.results.replaceChildren(problemNote(described(error)));
      })
      .finally(() => {
        if (!signal.aborted) this.results.removeAttribute("aria-busy");
      });
  }

  async run(collection, signal, model) {
    if (collection.state !== "ready") {
      const why =
        collection.state === "loading"
          ? "It is still being loaded."
          : "It could not be loaded; the server's log says why.";
      this.results.replaceChildren(h("div", { class: "note" }, data(collection.name), ": ", why));
      return;
    }
    const request = this.form.request();
    if (request === undefined) return this.results.replaceChildren(); // the form says what is wrong
    if (request === null) return this.browse(collection, signal);
    const head = request.query_id === undefined ? null : await this.queryItem(collection, request.query_id, signal);
    const databases = Object.keys(collection.databases);
    const series = seriesOf(databases);
    const columns = this.form.databases().map((database) =>
      column({
        collection: collection.name,
        body: { ...request, database },
        metric: model.metric,
        series: series(database),
        signal,
        onProblem: (error) => this.form.fault(error),
        onNothing: () => this.nothing(collection, database, request),
      }),
    );
    const area = columns.length > 0 ? h("div", { class: "columns" }, columns) : empty("Tick at least one database.");
    this.results.replaceChildren(...[head, area].filter(Boolean));
  }

  /** Why a column is empty, where the page knows it; and where to look instead. */
  nothing({ name, databases }, database, request) {
    if (databases[database] > 0)
      return request.filter && h("p", { class: "soft" }, "Nothing found here. Try it without the filter.");
    const filled = Object.keys(databases).filter((one) => databases[one] > 0);
    const query = new URLSearchParams(location.hash.split("?")[1]);
    const choice = filled.map((one, i) => {
      query.set("database", one);
      const address = query.has("collection") ? query : new URLSearchParams([["collection", name], ...query]);
      return [i > 0 && ", ", h("a", { href: `#/search?${address}` }, data(one)), ` (${plural(databases[one], "item")})`];
    });
    const where = filled.length > 0 ? ["Search instead in: ", choice, "."] : "The collection has no items yet.";
    return h("p", { class: "soft" }, "The database ", data(database), " is empty. ", where);
  }

  async queryItem(collection, id, signal) {
    let item;
    try {
      item = await get(at("collections", collection.name, "items", id), { signal });
    } catch (error) {
      if (error.name === "AbortError") throw error;
      return null; // the search itself tells what is wrong with it
    }
    return h(
      "div",
      { class: "query-item" },
      picture(item),
      h("div", {}, h("div", { class: "small soft" }, "Neighbours of"), h("strong", {}, data(titleOf(item), 200))),
      h("a", { href: itemLink(collection.name, id) }, "Item"),
    );
  }

  async browse(collection, signal) {
    const tiles = h("ul", { class: "tiles" });
    const more = h("button", { type: "button" }, "More");
    let cursor = "";
    const load = async () => {
      const path = at("collections", collection.name, "items");
      const found = await get(`${path}?limit=${TILES}${cursor && `&cursor=${cursor}`}`, { signal });
      cursor = found.next_cursor ?? "";
      tiles.append(...found.items.map((item) => tile(collection.name, item)));
      more.hidden = cursor === "";
    };
    await load();
    more.addEventListener("click", () => attempt(load));
    const list = h("a", { href: link(["collections", collection.name, "items"]) }, "all items as a list");
    const head = h("p", { class: "soft" }, "Click an item to see what is alike, or see ", list, ".");
    this.results.replaceChildren(
      ...(tiles.children.length > 0
        ? [head, tiles, h("div", {}, more)]
        : [
            empty(
              h("p", {}, data(collection.name), " has no items yet."),
              h("code", {}, `ccq index --collection ${collection.name} image=images.npy --ids ids.txt`),
            ),
          ]),
    );
  }
}

function noCollections() {
  return empty(
    h("p", {}, "There is no collection yet."),
    may("admin") &&
      h(
        "p",
        {},
        "Upload a model under ",
        h("a", { href: link(["models"]) }, "Models"),
        ", then make a collection under ",
        h("a", { href: link(["collections"]) }, "Collections"),
        ".",
      ),
    h("p", { class: "small" }, "To look around first: ", h("code", {}, "ccq demo --keep-serving")),
  );
}
