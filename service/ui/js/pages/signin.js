// Where the server wants an API key.
import { h, uid } from "../dom.js";
import { problemNote } from "../problems.js";
import { key, signIn, signOut } from "../session.js";

/** The page; `restart` is called once a key was typed. `problem`: what the server said. */
export function signInPage(problem, restart) {
  const field = uid("key");
  const refused = key() !== null;
  signOut();
  const input = h("input", { id: field, type: "password", autocomplete: "off", required: true, autofocus: true });
  input.addEventListener("input", () =>
    input.setCustomValidity(/[^\x20-\x7e]/.test(input.value) ? "No API key has such signs. Was something else pasted?" : ""),
  );
  const submit = (event) => {
    event.preventDefault();
    signIn(input.value.trim());
    restart();
  };
  const node = h(
    "div",
    { class: "sign-in panel" },
    h("h1", { tabIndex: -1 }, "Sign in"),
    h(
      "p",
      { class: "soft" },
      "This server needs an API key, or a token. It is kept until you close this tab, and sent to this server alone.",
    ),
    refused && problemNote(problem),
    h(
      "form",
      { class: "stack", on: { submit } },
      h("div", { class: "field" }, h("label", { for: field }, "API key"), input),
      h("button", { class: "primary", type: "submit" }, "Sign in"),
    ),
    h(
      "p",
      { class: "small soft" },
      "Keys are made on the server: ",
      h("code", {}, "ccq keys create NAME --scope admin --data DIR"),
    ),
  );
  return { title: "Sign in", node };
}
