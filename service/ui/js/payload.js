// What a payload looks like: guesses at its picture, its glyph and its title. Anything may be in it.
import { ROOT } from "./api.js";
import { data, h } from "./dom.js";

const GLYPHS = ["emoji", "glyph", "char"];
const IMAGES = ["image", "thumbnail", "url", "picture", "photo"];
const TITLES = ["title", "name", "text", "caption", "description", "label"];
const IMAGE_DATA = /^data:image\/(png|jpeg|gif|webp|avif|svg\+xml)[;,]/i;

function first(payload, keys, fits) {
  if (!payload || typeof payload !== "object") return null;
  return keys.find((key) => Object.hasOwn(payload, key) && fits(payload[key])) ?? null;
}

const isText = (value) => (typeof value === "string" && value.trim() !== "") || typeof value === "number";
const isGlyph = (value) => typeof value === "string" && value !== "" && value.length <= 24 && [...value].length <= 12;

/** Key of the payload under which its title is, or its glyph where it has one and `glyph` is wanted. */
export function labelKey(payload) {
  return first(payload, GLYPHS, isGlyph) ?? first(payload, TITLES, isText);
}

/** What to call an item. */
export function titleOf(item) {
  const key = first(item.payload, TITLES, isText);
  return key === null ? String(item.id) : String(item.payload[key]);
}

/**
 * The address of a payload's image: `shown` where the page may load it (image data, or files of this server), otherwise
 * it is only linked to. Addresses of other kinds, such as scripts, are none.
 */
export function imageOf(payload) {
  const key = first(payload, IMAGES, isText);
  if (key === null) return null;
  const given = String(payload[key]).trim();
  if (IMAGE_DATA.test(given)) return { address: given, shown: true };
  let url;
  try {
    url = new URL(given, ROOT);
  } catch {
    return null;
  }
  if (url.protocol !== "https:" && url.protocol !== "http:") return null;
  return { address: url.href, shown: url.origin === ROOT.origin && /[./]/.test(given) };
}

/** The picture of an item: its glyph, its image, or the first letter of its name. */
export function picture(item) {
  const glyph = first(item.payload, GLYPHS, isGlyph);
  if (glyph !== null) return h("span", { class: "picture", "aria-hidden": "true" }, glyphOf(item.payload[glyph]));
  const image = imageOf(item.payload);
  const frame = h("span", { class: "picture", "aria-hidden": "true" });
  if (image?.shown) {
    const failed = () => frame.replaceChildren(letter(item));
    frame.append(h("img", { src: image.address, alt: "", loading: "lazy", decoding: "async", on: { error: failed } }));
  } else frame.append(letter(item));
  return frame;
}

const glyphOf = (text) => h("bdi", { class: "glyph" }, text);

function letter(item) {
  return h("bdi", { class: "letter" }, [...titleOf(item).trim()][0]?.toUpperCase() ?? "·");
}

/** The first few fields of a payload, `[key, text]`: those that its picture and its title do not show already. */
export function firstFields(payload, most = 3) {
  if (!payload || typeof payload !== "object" || Array.isArray(payload)) return [];
  const image = imageOf(payload)?.shown ? first(payload, IMAGES, isText) : null;
  const seen = [first(payload, TITLES, isText), first(payload, GLYPHS, isGlyph), image];
  return Object.keys(payload)
    .filter((key) => !seen.includes(key))
    .map((key) => [key, fieldText(payload[key])])
    .filter(([, text]) => text !== null)
    .slice(0, most);
}

/** A value in one line; null where it is none that reads well in one. */
function fieldText(value) {
  if (isText(value) || typeof value === "boolean") return String(value);
  return Array.isArray(value) && value.length > 0 && value.every(isText) ? value.slice(0, 20).join(", ") : null;
}

/** A link to the image of a payload that may not be shown here; null if there is none. */
export function imageLink(payload) {
  const image = imageOf(payload);
  if (!image || image.shown) return null;
  const host = new URL(image.address).host;
  return h("a", { href: image.address, target: "_blank", rel: "noopener noreferrer" }, "Image at ", data(host, 40));
}

/** The whole payload, to be read. */
export function payloadText(payload) {
  return h("pre", { tabIndex: 0, dir: "ltr" }, h("bdi", {}, payload ? JSON.stringify(payload, null, 2) : "no payload"));
}
