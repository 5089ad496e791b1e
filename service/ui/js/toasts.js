// Short messages that tell what was done, or why it was not.
import { data, h } from "./dom.js";
import { described } from "./problems.js";

const SECONDS = 6;

function show(kind, ...content) {
  const close = h("button", { class: "quiet small", type: "button", on: { click: () => toast.remove() } }, "Close");
  const toast = h("div", { class: `toast ${kind}` }, h("div", {}, ...content), close);
  document.getElementById("toasts").append(toast);
  if (kind === "good") setTimeout(() => toast.remove(), SECONDS * 1000);
}

export const done = (...content) => show("good", ...content);

/** Run an action; its error is shown, and whether it went well is given back. */
export async function attempt(action) {
  try {
    await action();
    return true;
  } catch (error) {
    if (error.name === "AbortError") return false;
    const problem = described(error);
    show("bad", h("strong", {}, data(problem.title)), h("p", {}, data(problem.detail, 600)));
    return false;
  }
}
