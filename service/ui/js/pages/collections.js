// All collections: what each holds; and making one.
import { at, get, put } from "../api.js";
import { data, h } from "../dom.js";
import { bytes, count } from "../format.js";
import { empty, field, pageHead, panel, pill, select, table } from "../parts/fields.js";
import { watchLoading } from "../parts/loading.js";
import { described, problemNote } from "../problems.js";
import { go, link } from "../router.js";
import { may } from "../session.js";

export const KEEP = { none: "no features", float16: "features as float16", int8: "features as int8" };

export async function page({ signal }) {
  const [{ collections }, { aliases }, { models }, { encoders = {} }] = await Promise.all(
    ["collections", "aliases", "models", "limits"].map((path) => get(path, { signal })),
  );
  watchLoading(collections, signal);
  const rows = collections.map((one) => [
    h("a", { href: link(["collections", one.name]) }, data(one.name)),
    pill(one.state),
    count(one.items),
    one.items ? bytes(Math.round((10 * one.code_bytes) / one.items) / 10) : "–",
    bytes(one.code_bytes),
    h("a", { href: link(["models", one.model]) }, data(one.model)),
    data(Object.keys(one.databases ?? {}).join(", ") || "–"),
    data(aliasesOf(aliases, one.name).join(", ") || "–"),
  ]);
  const columns = [
    ["Name"],
    ["State"],
    ["Items", true],
    ["An item", true],
    ["Codes", true],
    ["Model"],
    ["Databases"],
    ["Aliases"],
  ];
  const node = h(
    "div",
    { class: "page" },
    pageHead("Collections"),
    h(
      "div",
      { class: "panel" },
      rows.length > 0 ? table("Collections", columns, rows) : empty("There is no collection yet."),
    ),
    may("admin") && creation(models, encoders),
  );
  return { title: "Collections", node };
}

export const aliasesOf = (aliases, collection) =>
  aliases.filter((one) => one.collection === collection).map(({ alias }) => alias);

/** A choice of an encoder for each modality of a model that has some of its dimension. */
function encoderChoices(model, encoders) {
  return Object.entries(model.modalities).flatMap(([modality, { dim }]) => {
    const fitting = Object.keys(encoders).filter((name) => encoders[name].dim === dim);
    if (fitting.length === 0) return [];
    return field(["Encoder of ", data(modality)], select(modality, ["", ...fitting], "", { "": "none" }));
  });
}

function creation(models, encoders) {
  if (models.length === 0) {
    return panel(
      "New collection",
      h(
        "p",
        { class: "soft" },
        "A collection needs a model: upload or train one under ",
        h("a", { href: "#/models" }, "Models"),
        ".",
      ),
    );
  }
  const name = h("input", { name: "name", required: true, autocomplete: "off" });
  const model = select(
    "model",
    models.map((one) => one.name),
  );
  const keep = select("keep", Object.keys(KEEP), "none", KEEP);
  const indexes = h("input", { name: "indexes", placeholder: "category, price", autocomplete: "off" });
  const wrong = h("div", { class: "wide" });
  const choices = h("div", { class: "form wide" });
  const fit = () =>
    choices.replaceChildren(
      ...encoderChoices(
        models.find((one) => one.name === model.value),
        encoders,
      ),
    );
  model.addEventListener("change", fit);
  fit();
  const chosen = () => {
    const named = [...choices.querySelectorAll("select")].filter(({ value }) => value !== "");
    return named.length > 0 && { encoders: Object.fromEntries(named.map((one) => [one.name, one.value])) };
  };
  const submit = async (event) => {
    event.preventDefault();
    const keys = indexes.value
      .split(",")
      .map((key) => key.trim())
      .filter(Boolean);
    try {
      await put(at("collections", name.value), {
        model: model.value,
        keep: keep.value,
        ...(keys.length > 0 && { indexes: keys }),
        ...chosen(),
      });
      go(link(["collections", name.value]));
    } catch (error) {
      wrong.replaceChildren(problemNote(described(error)));
    }
  };
  return panel(
    "New collection",
    h(
      "form",
      { class: "form", on: { submit } },
      field("Name", name),
      field("Model", model),
      field("Keep", keep),
      field("Indexed payload keys", indexes),
      choices,
      h("button", { class: "primary", type: "submit" }, "Create"),
      wrong,
    ),
  );
}
