// One model: what it is, how its training went, and how a collection uses it.
import { at, del, get } from "../api.js";
import { confirm } from "../dialogs.js";
import { data, h } from "../dom.js";
import { downloadLink } from "../download.js";
import { bytes, plural, time } from "../format.js";
import { curve } from "../parts/charts.js";
import { facts, pageHead, panel, table } from "../parts/fields.js";
import { insight } from "../parts/insight.js";
import { quality } from "../parts/quality.js";
import { go, link } from "../router.js";
import { mayAll } from "../session.js";
import { attempt, done } from "../toasts.js";

export async function page({ path: [, name], signal }) {
  const model = await get(at("models", name), { signal });
  const [collection, trained] = await Promise.all([firstUser(model, signal), trainingOf(model, signal)]);
  const remove = h("button", { type: "button", class: "danger", on: { click: () => removal(model) } }, "Delete");
  const modalities = Object.entries(model.modalities).map(([modality, { dim, weight }]) => [
    data(modality),
    dim,
    weight,
  ]);
  const node = h(
    "div",
    { class: "page" },
    pageHead(data(model.name), {
      crumbs: h("a", { href: "#/models" }, "Models"),
      actions: [
        downloadLink(`${at("models", name)}?file=true`, `${name}.ccq`, "Download", attempt),
        mayAll() && remove,
      ].filter(Boolean),
    }),
    h(
      "div",
      { class: "two" },
      panel(
        "Model",
        facts([
          ["Bits of a code", model.bits],
          ["Codebooks", model.bits / 8],
          ["Latent dimension", model.dim],
          ["Metric", model.metric],
          ["File", bytes(model.size)],
          ["Uploaded", time(model.created), true],
          ["Collections", users(model), true],
        ]),
        table("Modalities", [["Modality"], ["Dimension", true], ["Weight", true]], modalities),
        h("p", { class: "small soft" }, "SHA-256 ", h("code", {}, model.checksum)),
      ),
      losses(model.losses),
    ),
    trained && quality(trained.result),
    collection && h("h2", {}, "In ", h("a", { href: link(["collections", collection.name]) }, data(collection.name))),
    collection && insight(collection.name, Object.keys(collection.databases), signal),
  );
  return { title: model.name, node };
}

function users({ collections }) {
  if (collections.length === 0) return "none";
  return collections.map((name, i) => [i > 0 && ", ", h("a", { href: link(["collections", name]) }, data(name))]);
}

async function firstUser({ collections }, signal) {
  for (const name of collections.slice(0, 5)) {
    const info = await get(at("collections", name), { signal });
    if (info.state === "ready") return info;
  }
  return null;
}

/** The job that trained this very file, if it is still listed and may be seen. */
async function trainingOf({ checksum }, signal) {
  if (!mayAll()) return null;
  const { jobs } = await get("jobs?kind=train&state=done", { signal });
  return jobs.find(({ result }) => result?.checksum === checksum) ?? null;
}

function losses(values) {
  if (values.length < 2) return null;
  const [first, last] = [values[0].toFixed(3), values.at(-1).toFixed(3)];
  const title = `Training loss, from ${first} to ${last} in ${plural(values.length, "iteration")}`;
  return panel("Training loss", h("p", { class: "soft small" }, `${title}.`), curve(values, title));
}

async function removal(model) {
  const detail = "Its file is gone for good. A model that a collection uses is not deleted.";
  if (!(await confirm({ title: "Delete this model?", detail, typed: model.name }))) return;
  if (!(await attempt(() => del(at("models", model.name))))) return;
  done("The model was deleted.");
  go("#/models");
}
