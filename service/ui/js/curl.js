// A request as a command of a shell.
import { ROOT } from "./api.js";
import { key } from "./session.js";

const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;

/** A POST of JSON by curl. The key itself is left out: the command takes it from the environment. */
export function curl(path, body) {
  const parts = [`curl -s ${quoted(new URL(path, ROOT).href)}`, "-H 'Content-Type: application/json'"];
  if (key()) parts.push('-H "Authorization: Bearer $CCQ_API_KEY"');
  return [...parts, `-d ${quoted(JSON.stringify(body))}`].join(" \\\n  ");
}
