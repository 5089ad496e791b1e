// Files of the API, saved by the browser.
import { request, ROOT } from "./api.js";
import { h } from "./dom.js";
import { key } from "./session.js";

/** A link that saves a file. With a key the file has to be fetched first, as a link cannot send one. */
export function downloadLink(path, name, text, attempt) {
  const link = h("a", { class: "button", href: new URL(path, ROOT).href, download: name }, text);
  link.addEventListener("click", (event) => {
    if (!key()) return;
    event.preventDefault();
    attempt(() => save(path, name));
  });
  return link;
}

async function save(path, name) {
  if (window.showSaveFilePicker) {
    const place = await window.showSaveFilePicker({ suggestedName: name });
    const response = await request("GET", path);
    await response.body.pipeTo(await place.createWritable());
    return;
  }
  const response = await request("GET", path);
  const address = URL.createObjectURL(await response.blob());
  h("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}
