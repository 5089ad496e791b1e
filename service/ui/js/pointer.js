// Where in a JSON text the value stands that a pointer names: to show a fault at its place.

/**
 * The start and end of the value under a JSON pointer such as `/must/0/key`, or of what is next above it where there is
 * none. The text is valid JSON.
 */
export function locate(text, pointer) {
  const steps = pointer
    .split("/")
    .slice(1)
    .map((step) => step.replaceAll("~1", "/").replaceAll("~0", "~"));
  const start = skip(text, 0);
  const { end, found } = value(text, start, steps);
  return found ?? [start, end];
}

/** The value that starts at `start`: where it ends, and where in it the steps lead. */
function value(text, start, steps) {
  const open = text[start];
  let end;
  let found = null;
  if (open === "{" || open === "[") ({ end, found } = members(text, start, steps));
  else if (open === '"') end = stringEnd(text, start);
  else for (end = start; end < text.length && !/[,\]}\s]/.test(text[end]); end++);
  return { end, found: steps.length === 0 ? [start, end] : found };
}

function members(text, start, steps) {
  const object = text[start] === "{";
  let found = null;
  let at = skip(text, start + 1);
  for (let index = 0; text[at] !== "}" && text[at] !== "]"; index++) {
    let name = String(index);
    if (object) {
      const after = stringEnd(text, at);
      name = JSON.parse(text.slice(at, after));
      at = skip(text, skip(text, after) + 1);
    }
    const wanted = steps.length > 0 && name === steps[0];
    const inner = value(text, at, wanted ? steps.slice(1) : ["\0"]);
    if (wanted) found = inner.found ?? [at, inner.end];
    at = skip(text, inner.end);
    if (text[at] === ",") at = skip(text, at + 1);
  }
  return { end: at + 1, found };
}

function stringEnd(text, start) {
  let at = start + 1;
  while (text[at] !== '"') at += text[at] === "\\" ? 2 : 1;
  return at + 1;
}

function skip(text, at) {
  while (/\s/.test(text[at] ?? "")) at++;
  return at;
}
