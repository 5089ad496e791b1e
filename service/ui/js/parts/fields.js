// Fields of forms, each with its label, and maybe a hint.
import { data, h, uid } from "../dom.js";

/** A field around a control. */
export function field(label, control, hint) {
  control.id ||= uid("field");
  const hintId = hint && `${control.id}-hint`;
  if (hint) control.setAttribute("aria-describedby", hintId);
  return h(
    "div",
    { class: "field" },
    h("label", { for: control.id }, label),
    control,
    hint && h("span", { class: "hint", id: hintId }, hint),
  );
}

/** A choice of names. `texts`: what is shown for a name, where that is something else. */
export function select(name, options, chosen, texts = {}) {
  const made = h(
    "select",
    { name },
    options.map((option) => h("option", { value: option }, data(texts[option] ?? option, 80))),
  );
  if (chosen !== undefined && options.includes(chosen)) made.value = chosen;
  return made;
}

/** A few choices beside each other, one of which holds. `options`: `[value, text]`. */
export function segments(legend, name, options, chosen, change) {
  return h(
    "fieldset",
    { class: "segments-field" },
    h("legend", {}, legend),
    h(
      "div",
      { class: "segments" },
      options.map(([value, text]) =>
        h(
          "label",
          {},
          h("input", { type: "radio", name, value, checked: value === chosen, on: { change: () => change(value) } }),
          text,
        ),
      ),
    ),
  );
}

/** A box to tick. */
export function check(name, value, text, checked) {
  return h("label", { class: "check" }, h("input", { type: "checkbox", name, value, checked }), text);
}

/** A list of facts: `[name, value, plain]`; those without a value are left out. */
export function facts(entries) {
  const given = entries.filter((entry) => entry && entry[1] !== null && entry[1] !== undefined);
  return h(
    "dl",
    { class: "facts" },
    given.map(([name, value, plain]) =>
      h("div", {}, h("dt", {}, name), h("dd", { class: plain ? "plain" : null }, value)),
    ),
  );
}

/** The head of a page: its title, where it belongs, and what can be done. */
export function pageHead(title, { crumbs, actions = [] } = {}) {
  return h(
    "div",
    { class: "page-head" },
    h("div", {}, crumbs && h("div", { class: "crumbs" }, crumbs), h("h1", { tabIndex: -1 }, title)),
    actions.length > 0 && h("div", { class: "actions" }, actions),
  );
}

/** A part of a page with a heading of its own. */
export function panel(title, ...content) {
  const id = uid("panel");
  return h("section", { class: "panel", "aria-labelledby": id }, h("h2", { id }, title), ...content);
}

/** A table. `columns`: `[heading, is it a number]`; the first cell of a row is its heading. */
export function table(caption, columns, rows) {
  return h(
    "div",
    { class: "scroll", tabIndex: 0, role: "region", "aria-label": caption },
    h(
      "table",
      {},
      h("caption", { class: "hush" }, caption),
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          columns.map(([text, number]) => h("th", { scope: "col", class: number ? "number" : null }, text)),
        ),
      ),
      h(
        "tbody",
        {},
        rows.map((cells) =>
          h(
            "tr",
            {},
            cells.map((cell, i) =>
              i === 0 ? h("th", { scope: "row" }, cell) : h("td", { class: columns[i]?.[1] ? "number" : null }, cell),
            ),
          ),
        ),
      ),
    ),
  );
}

const STATES = {
  ready: "good",
  done: "good",
  loading: "wait",
  queued: "wait",
  running: "info",
  failed: "bad",
  cancelled: "",
};

/** The state of something, as a word in a colour. */
export const pill = (state) => h("span", { class: `pill ${STATES[state] ?? ""}` }, state);

/** Where there is nothing yet. */
export const empty = (...content) => h("div", { class: "empty" }, ...content);
