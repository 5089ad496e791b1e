// What is searched by: words, a picture, an item, or features. From an address into fields, and from there into a request.
import { data, h } from "../dom.js";
import { field } from "./fields.js";

const LONGEST = 1500; // characters of features in an address

/** What an address asks for; `before`: what was asked before, which has what is too long for an address. */
export function asked(query, modalities, before) {
  const long = query.has("long");
  const given = modalities.filter((name) => query.has(`features.${name}`));
  const features = Object.fromEntries(given.map((name) => [name, query.get(`features.${name}`)]));
  return {
    words: query.get("words") ?? "",
    item: query.get("item") ?? "",
    features: long ? (before?.features ?? {}) : features,
    picture: long ? (before?.picture ?? null) : null,
  };
}

/** The same as parts of an address. */
export function addressOf(by, state) {
  if (by === "words" || by === "item") return { [by]: state[by] };
  if (by === "picture") return { long: state.picture ? 1 : "" };
  const named = Object.entries(state.features).map(([name, text]) => [`features.${name}`, text.trim()]);
  const length = named.reduce((sum, [, text]) => sum + text.length, 0);
  return length > LONGEST ? { long: 1 } : Object.fromEntries(named);
}

/** The fields for it. */
export function fieldsOf(by, state, modalities) {
  const plain = { autocomplete: "off" };
  if (by === "words") {
    const input = { ...plain, type: "search", name: "words", value: state.words, placeholder: "red fruit" };
    return [field("Words", h("input", input))];
  }
  if (by === "picture") return [field("Picture", h("input", { type: "file", name: "picture", accept: "image/*" }))];
  if (by === "features") {
    const hint = "Lists of numbers, or base64 of float32, as your encoder gives them. Several modalities make one query.";
    const boxes = modalities.map((name) => featureField(name, state.features[name] ?? ""));
    return [h("p", { class: "soft small" }, hint), ...boxes];
  }
  const input = { ...plain, name: "item", value: state.item, placeholder: "or click an item below" };
  return [field("Id of an item", h("input", input))];
}

function featureField(modality, text) {
  const box = h("textarea", { name: "features", data: { modality }, rows: 2, placeholder: "[0.12, -0.4, …]" });
  box.value = text;
  box.spellcheck = false;
  return field(["Features of ", data(modality)], box);
}

/** What the fields hold; of a file its bytes in base64, those of before if none was chosen. */
export async function read(fields, state) {
  const named = fields.flatMap((one) => [...one.querySelectorAll("[name]")]);
  const boxes = named.filter(({ name }) => name === "features");
  const file = named.find(({ type }) => type === "file")?.files[0];
  return {
    ...Object.fromEntries(named.map(({ name, value }) => [name, value])),
    features: Object.fromEntries(boxes.map(({ dataset, value }) => [dataset.modality, value])),
    picture: file ? await base64(file) : state.picture,
  };
}

function base64(file) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result.slice(reader.result.indexOf(",") + 1));
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(file);
  });
}

/**
 * The part of the request that says what is searched for; null if that is nothing. `words`, `pictures`: the modalities
 * that take these. Throws an Error that says what is wrong.
 */
export function queryOf(by, state, { words, pictures }) {
  if (by === "words") return state.words.trim() ? { query: { [words]: { text: state.words.trim() } } } : null;
  if (by === "picture") return state.picture ? { query: { [pictures]: { base64: state.picture } } } : null;
  if (by === "item") return state.item ? { query_id: state.item } : null;
  const given = Object.entries(state.features).filter(([, text]) => text.trim() !== "");
  const hint = words ? " To search by words, choose Words above." : " Words are no features: an encoder makes them.";
  const query = Object.fromEntries(given.map(([name, text]) => [name, vector(name, text.trim(), hint)]));
  return given.length > 0 ? { query } : null;
}

/** Features as the API takes them: a list, or base64. Numbers may be given without brackets, or as NumPy prints them. */
function vector(modality, text, hint) {
  const parts = text.replace(/^\[+|\]+$/g, " ").trim().split(/[\s,;]+/);
  const numbers = parts.map((part) => (part === "" ? NaN : Number(part)));
  const whole = text.startsWith("[") === text.endsWith("]"); // what is cut off is no list
  if (whole && (text.startsWith("[") || numbers.length > 1) && numbers.every(Number.isFinite)) return numbers;
  if (text.startsWith("[")) {
    const odd = parts[numbers.findIndex((number) => !Number.isFinite(number))];
    const cut = numbers.every(Number.isFinite) ? "one without its end" : "an empty one";
    const got = odd ? `"${[...odd].slice(0, 40).join("")}", which is no number` : cut;
    throw new Error(`Features of ${modality}: expected a JSON list of numbers such as [0.12, -0.4], got ${got}.`);
  }
  const joined = text.replace(/\s+/g, "");
  if (/^[A-Za-z0-9+/]+={0,2}$/.test(joined) && joined.length % 4 === 0) return joined;
  throw new Error(`Features of ${modality}: expected numbers such as [0.12, -0.4], or base64 of float32.${hint}`);
}
