// All jobs, as they go on; starting a training.
import { at, get, post } from "../api.js";
import { data, h } from "../dom.js";
import { time } from "../format.js";
import { empty, field, pageHead, panel, select, table } from "../parts/fields.js";
import { ended, jobActions, jobState } from "../parts/job.js";
import { poll } from "../poll.js";
import { described, problemNote } from "../problems.js";
import { go, link } from "../router.js";

export async function page({ signal }) {
  const [first, { collections }] = await Promise.all([get("jobs", { signal }), get("collections", { signal })]);
  const place = h("div", { class: "panel", id: "jobs" });
  const show = ({ jobs }) => place.replaceChildren(jobs.length > 0 ? list(jobs, ask) : empty("There are no jobs."));
  const ask = async () => {
    const found = await get("jobs", { signal });
    if (!place.contains(document.activeElement)) show(found); // what has the focus stays where it is
    return found;
  };
  show(first);
  poll(ask, signal).catch((error) => {
    if (!signal.aborted) place.append(problemNote(described(error)));
  });
  const node = h(
    "div",
    { class: "page" },
    pageHead("Jobs"),
    place,
    training(collections.filter(({ keep }) => keep !== "none")),
  );
  return { title: "Jobs", node };
}

function list(jobs, again) {
  const rows = jobs.map((job) => [
    h("a", { href: link(["jobs", job.id]) }, job.kind === "train" ? "Train " : "Encode anew ", data(job.target)),
    jobState(job),
    time(job.created),
    time(job.ended),
    jobActions(job, again, { kind: "small" }),
  ]);
  const running = jobs.filter((job) => !ended(job)).length;
  return h(
    "div",
    {},
    h(
      "p",
      { class: "soft small", role: "status" },
      running === 0 ? "Nothing is running." : `${running} not ended yet.`,
    ),
    table("Jobs", [["Job"], ["State"], ["Queued"], ["Ended"], [""]], rows),
  );
}

function training(collections) {
  const text = "On the features that a collection keeps.";
  if (collections.length === 0) {
    return panel(
      "Train a model",
      h("p", { class: "soft" }, text, " There is none that keeps any: make it so when you create it."),
    );
  }
  const name = h("input", { required: true, autocomplete: "off" });
  const collection = select(
    "collection",
    collections.map((one) => one.name),
  );
  const bits = select("bits", ["8", "16", "24", "32", "48", "64", "96", "128"], "32");
  const metric = select("metric", ["cosine", "euclidean"]);
  const iterations = h("input", { type: "number", min: 1, value: 30 });
  const heldOut = h("input", { type: "number", min: 0, max: 0.5, step: 0.05, value: 0.1 });
  const wrong = h("div", { class: "wide" });
  const submit = async (event) => {
    event.preventDefault();
    const body = {
      collection: collection.value,
      bits: Number(bits.value),
      metric: metric.value,
      iterations: Number(iterations.value),
      held_out: Number(heldOut.value),
    };
    try {
      const job = await post(`${at("models", name.value)}/train`, body);
      go(link(["jobs", job.id]));
    } catch (error) {
      wrong.replaceChildren(problemNote(described(error)));
    }
  };
  return panel(
    "Train a model",
    h("p", { class: "soft small" }, text),
    h(
      "form",
      { class: "form", on: { submit } },
      field("Collection", collection),
      field("Name of the new model", name),
      field("Bits", bits),
      field("Metric", metric),
      field("Most iterations", iterations),
      field("Share held out, to try it on", heldOut),
      h("button", { class: "primary", type: "submit" }, "Start"),
      wrong,
    ),
  );
}
