// Prometheus' text format, as far as it is needed here.
const LINE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)/;
const LABEL = /(\w+)="((?:[^"\\]|\\.)*)"/g;

/** The samples of a document: `{name, labels, value}`. */
export function samples(text) {
  return text
    .split("\n")
    .map((line) => LINE.exec(line))
    .filter(Boolean)
    .map(([, name, labels = "", value]) => ({
      name,
      labels: Object.fromEntries([...labels.matchAll(LABEL)].map(([, label, held]) => [label, held])),
      value: Number(value),
    }));
}
