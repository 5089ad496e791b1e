// Questions before what cannot be undone.
import { data, h, uid } from "./dom.js";

/**
 * Ask whether to go on. Resolves to true or false.
 *
 * `typed`: a name that has to be typed first; `action`: what the button says.
 */
export function confirm({ title, detail, action = "Delete", typed = null }) {
  const heading = uid("title");
  const field = uid("typed");
  const go = h("button", { class: "danger primary", value: "go", disabled: typed !== null }, action);
  const input =
    typed !== null &&
    h("input", {
      id: field,
      autocomplete: "off",
      on: { input: (event) => (go.disabled = event.target.value !== typed) },
    });
  const dialog = h(
    "dialog",
    { "aria-labelledby": heading },
    h(
      "form",
      { method: "dialog", class: "stack" },
      h("h2", { id: heading }, title),
      h("p", {}, detail),
      input &&
        h(
          "div",
          { class: "field" },
          h("label", { for: field }, "Type ", h("strong", {}, data(typed)), " to go on"),
          input,
        ),
      h("div", { class: "row" }, go, h("button", { value: "", formNoValidate: true }, "Cancel")),
    ),
  );
  document.body.append(dialog);
  return new Promise((resolve) => {
    // Enter in the field would press the first button, even one that is disabled in some browsers.
    dialog
      .querySelector("form")
      .addEventListener("submit", (event) => event.submitter === go && go.disabled && event.preventDefault());
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(dialog.returnValue === "go");
    });
    dialog.showModal();
    (input || dialog.querySelector("button[value='']")).focus();
  });
}
