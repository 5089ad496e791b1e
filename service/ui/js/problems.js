// Errors in words.
import { data, h } from "./dom.js";

// What a detail says to those who speak HTTP.
const FOR_PROGRAMS = /; (GET|PUT|POST|DELETE) \/.*$/s;

/** A problem: its title, its detail, and each fault that this does not name with the place that it is at. */
export function problemNote(problem, { without = [] } = {}) {
  const said = (problem.detail ?? problem.message)?.replace(FOR_PROGRAMS, "");
  const faults = (problem.errors ?? []).filter(
    ({ pointer, detail }) =>
      !without.some((start) => pointer.startsWith(start)) && !said.includes(detail.replace(/^\S+: /, "")),
  );
  return h(
    "div",
    { class: "note bad", role: "alert" },
    h("strong", {}, data(problem.title ?? "Something went wrong")),
    h("p", {}, data(said, 2000)),
    faults.length > 0 &&
      h(
        "ul",
        {},
        faults.map(({ pointer, detail }) => h("li", {}, h("code", {}, data(pointer)), " ", data(detail, 1000))),
      ),
  );
}

/** What an error is to people: problems of the API as they are, and faults of this page as such. */
export function described(error) {
  if (error.code !== undefined && error.title !== undefined) return error;
  console.error(error);
  return { title: "The dashboard has a fault", detail: String(error.message ?? error), errors: [] };
}
