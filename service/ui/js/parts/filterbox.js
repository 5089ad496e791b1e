// The box for a filter as JSON, with what is wrong with it at its place.
import { data, h, uid } from "../dom.js";
import { locate } from "../pointer.js";

const AROUND = 40;
const EXAMPLE = '{"must": [{"key": "group", "match": {"value": "Animals"}}]}';

/** The box: its `node`, `read` (the filter, null if there is none, or undefined after showing what is wrong), `show`. */
export function filterBox(text) {
  const id = uid("filter");
  const faults = h("div", { class: "fault", id: `${id}-fault`, role: "alert" });
  const box = h("textarea", { id, placeholder: EXAMPLE, "aria-describedby": `${id}-fault` });
  box.spellcheck = false;
  box.value = text;
  const node = h(
    "details",
    { open: text !== "" },
    h("summary", {}, "Filter"),
    h("div", { class: "field" }, h("label", { for: id }, "Filter, as JSON"), box, faults),
  );

  function mark(content) {
    box.setAttribute("aria-invalid", "true");
    faults.replaceChildren(...content);
    node.open = true;
  }

  function clear() {
    box.removeAttribute("aria-invalid");
    faults.replaceChildren();
  }

  function read() {
    clear();
    if (box.value.trim() === "") return null;
    try {
      return JSON.parse(box.value);
    } catch (error) {
      mark([h("span", {}, "This is no JSON: ", data(error.message))]);
      return undefined;
    }
  }

  /** Show the faults of a problem that are about the filter; whether there are any. */
  function show(problem) {
    const own = (problem.errors ?? []).filter(
      ({ pointer }) => pointer === "#/filter" || pointer.startsWith("#/filter/"),
    );
    if (own.length > 0) mark(own.map((fault) => faultAt(box.value, fault)));
    return own.length > 0;
  }

  return { node, box, read, show, clear };
}

function faultAt(text, { pointer, detail }) {
  const path = pointer.slice("#/filter".length);
  const [start, end] = locate(text, path);
  const [from, to] = [Math.max(0, start - AROUND), Math.min(text.length, end + AROUND)];
  return h(
    "div",
    {},
    h("span", {}, data(detail, 500), " (at ", data(path || "the filter"), ")"),
    h("br"),
    h(
      "code",
      {},
      from > 0 && "…",
      data(text.slice(from, start)),
      h("mark", {}, data(text.slice(start, end))),
      data(text.slice(end, to)),
      to < text.length && "…",
    ),
  );
}
