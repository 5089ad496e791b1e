// The form of a search: all of it stands in the address, but for features that are too long for one.
import { h } from "../dom.js";
import { link } from "../router.js";
import { check, field, segments, select } from "./fields.js";
import { filterBox } from "./filterbox.js";

const LONGEST = 1500; // characters of features in an address
const LIMIT = 12;

/** The first modality of a collection whose encoder takes these: `text` or `image`; null if there is none. */
function taking(kind, collection, encoders) {
  const entries = Object.entries(collection.encoders ?? {});
  return entries.find(([, name]) => encoders[name]?.takes === kind)?.[0] ?? null;
}

/**
 * The form.
 *
 * `encoders`: those of the server, by name, as `GET /limits` has them. `before`: the form that was there, from which long features and pictures are taken over. `submit`: called with the address of the
 * search. It has `node`; `request`, the body of the search without its database, null where nothing is asked for, and
 * undefined after showing what is wrong; `databases`; `fault`, which shows a problem where it belongs.
 */
export function searchForm({ names, collection, model, encoders, query, before, submit }) {
  const words = taking("text", collection, encoders);
  const pictures = taking("image", collection, encoders);
  const modalities = Object.keys(model?.modalities ?? {});
  const possible = { words: words !== null, picture: pictures !== null, item: true, features: true };
  const by = possible[query.get("by")] ? query.get("by") : words ? "words" : "item";
  const state = {
    words: query.get("words") ?? "",
    item: query.get("item") ?? "",
    modality: modalities.includes(query.get("modality")) ? query.get("modality") : modalities[0],
    features: query.get("features") ?? (query.has("long") ? (before?.state.features ?? "") : ""),
    picture: query.has("long") ? (before?.state.picture ?? null) : null,
  };
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
  const controls = inputs(by, state, modalities); // the first beside the choice, others below
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

  async function asked() {
    Object.assign(state, await read(controls, state));
    if (by === "words") return { words: state.words };
    if (by === "item") return { item: state.item };
    if (by === "picture") return { long: state.picture ? 1 : "" };
    const long = state.features.length > LONGEST;
    return { modality: state.modality, features: long ? "" : state.features, long: long ? 1 : "" };
  }

  node.addEventListener("submit", async (event) => {
    event.preventDefault();
    submit(link(["search"], { ...kept(), by, ...(await asked()) }));
  });

  function request() {
    const parsed = filter.read();
    if (parsed === undefined) return undefined;
    const what = queryOf(by, state, { words, pictures }, wrong);
    if (!what) return what;
    return { ...what, limit: Math.max(1, Number(limit.value) || LIMIT), ...(parsed && { filter: parsed }) };
  }

  /** Show a problem at the filter if it is about that; then what is to stand in the place of results. */
  function fault(problem) {
    return filter.show(problem) ? h("p", { class: "soft" }, "The filter cannot be used.") : null;
  }

  return { node, state, request, fault, databases: ticked };
}

/** The fields for what is searched by. */
function inputs(by, state, modalities) {
  const text = { autocomplete: "off" };
  if (by === "words")
    return [
      field(
        "Words",
        h("input", { ...text, type: "search", name: "words", value: state.words, placeholder: "red fruit" }),
      ),
    ];
  if (by === "picture") return [field("Picture", h("input", { type: "file", name: "picture", accept: "image/*" }))];
  if (by === "features") {
    const box = h("textarea", { name: "features", rows: 3, placeholder: "[0.12, -0.4, …] or base64 of float32" });
    box.value = state.features;
    box.spellcheck = false;
    return [field("Modality", select("modality", modalities, state.modality)), field("Features", box)];
  }
  return [
    field(
      "Id of an item",
      h("input", { ...text, name: "item", value: state.item, placeholder: "or click an item below" }),
    ),
  ];
}

/** What the fields hold; of a file its bytes in base64, those of before if none was chosen. */
async function read(controls, state) {
  const named = controls.flatMap((control) => [...control.querySelectorAll("[name]")]);
  const held = Object.fromEntries(named.map(({ name, value }) => [name, value]));
  const file = named.find(({ type }) => type === "file")?.files[0];
  return { ...held, picture: file ? await base64(file) : state.picture };
}

function base64(file) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result.slice(reader.result.indexOf(",") + 1));
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(file);
  });
}

/** The part of the request that says what is searched for: null if that is nothing, undefined if it cannot be. */
function queryOf(by, state, { words, pictures }, wrong) {
  wrong.replaceChildren();
  if (by === "words") return state.words.trim() && words ? { query: { [words]: { text: state.words.trim() } } } : null;
  if (by === "picture") return state.picture && pictures ? { query: { [pictures]: { base64: state.picture } } } : null;
  if (by === "item") return state.item ? { query_id: state.item } : null;
  const text = state.features.trim();
  if (text === "") return null;
  if (!text.startsWith("[")) return { query: { [state.modality]: text.replace(/\s+/g, "") } };
  try {
    return { query: { [state.modality]: JSON.parse(text) } };
  } catch (error) {
    wrong.replaceChildren(`Features: this is no JSON list of numbers (${error.message})`);
    return undefined;
  }
}
