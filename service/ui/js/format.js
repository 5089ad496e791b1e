// Numbers, sizes and times as people read them.
const numbers = new Intl.NumberFormat("en");
const UNITS = ["B", "kB", "MB", "GB", "TB"];

export const count = (value) => (value === null || value === undefined ? "–" : numbers.format(value));

/** Bytes, in decimal units. */
export function bytes(value) {
  if (value === null || value === undefined) return "–";
  let unit = 0;
  while (value >= 1000 && unit < UNITS.length - 1) [value, unit] = [value / 1000, unit + 1];
  return `${unit === 0 ? value : value.toFixed(value < 10 ? 1 : 0)} ${UNITS[unit]}`;
}

/** A share of 0 to 1 as per cent. */
export const percent = (share, digits = 0) => `${(100 * share).toFixed(digits)} %`;

/** Seconds, or milliseconds where they are few. */
export function duration(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds < 1) return `${Math.max(1, Math.round(seconds * 1000))} ms`;
  if (seconds < 90) return `${seconds.toFixed(seconds < 10 ? 1 : 0)} s`;
  return seconds < 5400 ? `${Math.round(seconds / 60)} min` : `${(seconds / 3600).toFixed(1)} h`;
}

/** A time (ISO 8601) in words of here. */
export function time(iso) {
  return iso ? new Date(iso).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" }) : "–";
}

/** One of something, or several: `plural(2, "item")`. */
export const plural = (n, word) => `${count(n)} ${word}${n === 1 ? "" : "s"}`;
