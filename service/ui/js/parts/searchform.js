// The form of a search: all of it stands in the address, but for features that are too long for one.
import { data, h } from "../dom.js";
import { link } from "../router.js";
import { check, field, segments, select } from "./fields.js";
import { filterBox } from "./filterbox.js";
import { addressOf, asked, fieldsOf, queryOf, read } from "./queryfields.js";

const LIMIT = 12;

/** A fault of a query in the words of the form: `query.text: …` is about "Features of text". */
const inFields = (detail) => detail.replace(/^query\.(.+?): /, "Features of $1: ").replace(/^query_id: /, "Id of an item: ");

/** The first modality of a collection whose encoder takes these: `text` or `image`; null if there is none. */
function taking(kind, collection, encoders) {
  const entries = Object.entries(collection.encoders ?? {});
  return entries.find(([, name]) => encoders[name]?.takes === kind)?.[0] ?? null;
}

/**
 * The form.
 *
 * `encoders`: those of the server, by name, as `GET /limits` has them. `before`: the form that was there, from which long
 * features and pictures are taken over. `submit`: called with the address of the search.
 *
 * It has `node`; `request`, the body of the search without its database, null where nothing is asked for, and
 * undefined after showing what is wrong; `databases`; `fault`, which shows a problem where it belongs.
 */
export function searchForm({ names, collection, model, encoders, query, before, submit }) {
  const words = taking("text", collection, encoders);
  const pictures = taking("image", collection, encoders);
  const modalities = Object.keys(model?.modalities ?? {});
  const possible = { words: words !== null, picture: pictures !== null, item: true, features: true };
  const by = possible[query.get("by")] ? query.get("by") : words ? "words" : "item";
  const state = asked(query, modalities, before?.state);
  const limit = h("input", {
    type: "number",
    min: 1,
    max: 1000,
    value: query.get("limit") ?? LIMIT,
    name: "limit",
    class: "limit",
  });
  const filter = filterBox(query.get("filter") ?? "");
  const all = Object.keys(collection.databases ?? {});
  const chosen = query.getAll("database").filter((name) => all.includes(name));
  const boxes = all.map((name) => check("database", name, name, chosen.length === 0 || chosen.includes(name)));
  const choice = select("collection", names, collection.name);
  choice.addEventListener("change", () => submit(link(["search"], { collection: choice.value })));
  const ways = [
    words && ["words", "Words"],
    pictures && ["picture", "Picture"],
    ["item", "Item"],
    ["features", "Features"],
  ];
  const controls = fieldsOf(by, state, modalities); // the first beside the choice, others below
  const wrong = h("div", { class: "fault", role: "alert" });
  const node = h(
    "form",
    { class: "search-form panel", role: "search", novalidate: "" },
    h(
      "div",
      { class: "search-line" },
      field("Collection", choice),
      segments("Search by", "by", ways.filter(Boolean), by, (next) =>
        submit(link(["search"], { ...kept(), by: next })),
      ),
      controls[0],
      h("button", { class: "primary", type: "submit" }, "Search"),
    ),
    controls.slice(1),
    wrong,
    h(
      "div",
      { class: "search-more" },
      h("fieldset", {}, h("legend", {}, "Databases"), h("div", { class: "row" }, boxes)),
      h("div", {}, field("Limit", limit)),
    ),
    filter.node,
  );

  const ticked = () =>
    boxes
      .map((box) => box.querySelector("input"))
      .filter((box) => box.checked)
      .map((box) => box.value);

  /** What stays whatever is searched by. */
  function kept() {
    const some = ticked();
    return {
      collection: collection.name,
      database: some.length === all.length ? [] : some,
      limit: Number(limit.value) === LIMIT ? "" : limit.value,
      filter: filter.box.value.trim(),
    };
  }

  node.addEventListener("submit", async (event) => {
    event.preventDefault();
    Object.assign(state, await read(controls, state));
    submit(link(["search"], { ...kept(), by, ...addressOf(by, state) }));
  });

  function request() {
    const parsed = filter.read();
    if (parsed === undefined) return undefined;
    let what;
    try {
      wrong.replaceChildren();
      what = queryOf(by, state, { words, pictures });
    } catch (error) {
      wrong.replaceChildren(data(error.message));
      return undefined;
    }
    return what && { ...what, limit: Math.max(1, Number(limit.value) || LIMIT), ...(parsed && { filter: parsed }) };
  }

  /** Show a problem at the filter, or the fields, if it is about these; then what is to stand in the place of results. */
  function fault(problem) {
    if (problem.errors?.length > 0 && problem.errors.every(({ pointer }) => /^#\/query(_id)?(\/|$)/.test(pointer))) {
      wrong.replaceChildren(...problem.errors.map(({ detail }) => h("div", {}, data(inFields(detail), 1000))));
      return h("p", { class: "soft" }, "The query cannot be used.");
    }
    return filter.show(problem) ? h("p", { class: "soft" }, "The filter cannot be used.") : null;
  }

  return { node, state, request, fault, databases: ticked };
}
