// The API: requests with the key that was signed in with, and errors in its own words.
import { key, refused } from "./session.js";

/** Where the API is: the folder above the dashboard's. */
export const ROOT = new URL("..", new URL(".", document.baseURI.split("#")[0]));

/** What the API, or the way to it, answered instead of a result. */
export class Problem extends Error {
  constructor({ status = 0, code = "unreachable", title, detail = "", errors = [] }) {
    super(title);
    Object.assign(this, { status, code, title, detail, errors: errors ?? [] });
  }
}

const ELSEWHERE = "The answer is a web page, not this service's. A proxy or a sign-in page may stand before it.";
const AWAY = "A proxy answers, but the service behind it does not. It may be starting, or stopped: try again in a moment.";
const DETAILS = {
  413: "The request is larger than a proxy before the service lets through. Send less at once, or raise the proxy's limit.",
  429: "Too many requests came in a short time. Wait a moment, then try again.",
  502: AWAY,
  503: AWAY,
  504: AWAY,
};

export const get = (path, options) => call("GET", path, undefined, options);
export const post = (path, body, options) => call("POST", path, body, options);
export const put = (path, body, options) => call("PUT", path, body, options);
export const del = (path, options) => call("DELETE", path, undefined, options);

/** A path of the API; each part is encoded. */
export const at = (...parts) => parts.map(encodeURIComponent).join("/");

/** The reply to a request: JSON as an object, other text as it is, null if there is none. */
export async function call(method, path, body, options) {
  const response = await request(method, path, body, options);
  if (response.status === 204) return null;
  const kind = response.headers.get("Content-Type") ?? "";
  if (kind.includes("html"))
    throw new Problem({ status: response.status, code: "unknown", title: "Another server answered", detail: ELSEWHERE });
  return kind.includes("json") ? response.json() : response.text();
}

/** The response to a request; a Problem if it is no success. `body`: an object, sent as JSON, or a file. */
export async function request(method, path, body, { signal, headers: more = {} } = {}) {
  const headers = new Headers(more);
  if (key()) headers.set("Authorization", `Bearer ${key()}`);
  const init = { method, headers, signal, credentials: "omit", cache: "no-store", redirect: "error" };
  if (body instanceof Blob) {
    init.body = body;
    headers.set("Content-Type", "application/octet-stream");
  } else if (body !== undefined) {
    init.body = JSON.stringify(body);
    headers.set("Content-Type", "application/json");
  }
  let response;
  try {
    response = await fetch(new URL(path, ROOT), init);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem({
      title: "The server cannot be reached",
      detail: "It may be stopped, or the network may be down. Check that `ccq serve` runs, then try again.",
    });
  }
  if (response.ok) return response;
  const problem = await problemOf(response);
  if (problem.status === 401) refused();
  throw problem;
}

async function problemOf(response) {
  try {
    return new Problem(await response.json());
  } catch {
    const { status } = response;
    const detail = DETAILS[status] ?? "It gave no reason. The server's log may have one.";
    return new Problem({ status, code: "unknown", title: `The server answered ${status}`, detail });
  }
}
