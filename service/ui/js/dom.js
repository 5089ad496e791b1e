// Elements. Whatever comes from the server becomes a text node: nothing is ever parsed as HTML.

/**
 * An element. Props: `class`, `data` (an object), `on` (listeners by event), properties that the element has, attributes.
 * Children: nodes, strings, numbers, lists of these; null, undefined and false are left out.
 */
export function h(tag, props = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "class") element.className = value;
    else if (name === "data") Object.assign(element.dataset, value);
    else if (name === "on")
      for (const [event, handle] of Object.entries(value)) element.addEventListener(event, handle);
    else if (name in element && !name.includes("-") && name !== "list" && name !== "for") element[name] = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...nodes(children));
  return element;
}

/** An SVG element with attributes. */
export function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...nodes(children));
  return element;
}

function nodes(children) {
  return children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false);
}

/** Text of unknown origin, so set apart that its direction marks reach no further; shortened to `most` characters. */
export function data(text, most = 300) {
  const whole = String(text);
  const characters = whole.length > most ? [...whole.slice(0, most * 2)] : null;
  return h("bdi", {}, characters && characters.length > most ? `${characters.slice(0, most).join("")}…` : whole);
}

let last = 0;

/** An id that no other element has. */
export const uid = (prefix) => `${prefix}-${++last}`;
