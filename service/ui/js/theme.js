// Light, dark, or as the system has it; remembered by the browser.
import { h } from "./dom.js";

const STORED = "ccq-theme";
const CHOICES = { auto: "System", light: "Light", dark: "Dark" };

function chosen() {
  const stored = localStorage.getItem(STORED);
  return stored in CHOICES ? stored : "auto";
}

function apply(choice) {
  if (choice === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = choice;
  window.dispatchEvent(new Event("ccq-theme"));
}

/** Have the theme that was chosen last. */
export const applyTheme = () => apply(chosen());

/** A button that goes through the choices. */
export function themeSwitch() {
  const names = Object.keys(CHOICES);
  const button = h("button", { type: "button", class: "quiet small", id: "theme" });
  const show = () => button.replaceChildren(`Theme: ${CHOICES[chosen()]}`);
  button.addEventListener("click", () => {
    localStorage.setItem(STORED, names[(names.indexOf(chosen()) + 1) % names.length]);
    apply(chosen());
    show();
  });
  show();
  return button;
}
