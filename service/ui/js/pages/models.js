// All models; uploading one.
import { at, get, put } from "../api.js";
import { data, h } from "../dom.js";
import { bytes, time } from "../format.js";
import { empty, field, pageHead, panel, table } from "../parts/fields.js";
import { described, problemNote } from "../problems.js";
import { go, link } from "../router.js";
import { mayAll } from "../session.js";

export async function page({ signal }) {
  const { models } = await get("models", { signal });
  const rows = models.map((one) => [
    h("a", { href: link(["models", one.name]) }, data(one.name)),
    one.bits,
    one.metric,
    data(modalityText(one.modalities)),
    bytes(one.size),
    data(one.collections.join(", ") || "–"),
    time(one.created),
  ]);
  const columns = [["Name"], ["Bits", true], ["Metric"], ["Modalities"], ["File", true], ["Collections"], ["Uploaded"]];
  const node = h(
    "div",
    { class: "page" },
    pageHead("Models"),
    h("div", { class: "panel" }, rows.length > 0 ? table("Models", columns, rows) : empty("There is no model yet.")),
    mayAll() && upload(),
  );
  return { title: "Models", node };
}

export const modalityText = (modalities) =>
  Object.entries(modalities)
    .map(([name, { dim }]) => `${name} (${dim})`)
    .join(", ");

function upload() {
  const file = h("input", { type: "file", required: true, accept: ".ccq" });
  const name = h("input", { required: true, autocomplete: "off" });
  file.addEventListener("change", () => (name.value ||= file.files[0]?.name.replace(/\.ccq$/, "") ?? ""));
  const wrong = h("div", { class: "wide" });
  const submit = async (event) => {
    event.preventDefault();
    try {
      await put(at("models", name.value), file.files[0]);
      go(link(["models", name.value]));
    } catch (error) {
      wrong.replaceChildren(problemNote(described(error)));
    }
  };
  return panel(
    "Upload a model",
    h(
      "form",
      { class: "form", on: { submit } },
      field("Model file, as ccq train makes it", file),
      field("Name", name),
      h("button", { class: "primary", type: "submit" }, "Upload"),
      wrong,
    ),
    h(
      "p",
      { class: "soft small" },
      "Or train one on the server, on what a collection keeps: ",
      h("a", { href: "#/jobs" }, "Jobs"),
      ".",
    ),
  );
}
