// One job, watched until it has ended.
import { at, get } from "../api.js";
import { data, h } from "../dom.js";
import { count, duration, time } from "../format.js";
import { curve } from "../parts/charts.js";
import { facts, pageHead, panel } from "../parts/fields.js";
import { ended, jobActions, jobState } from "../parts/job.js";
import { quality } from "../parts/quality.js";
import { poll } from "../poll.js";
import { described, problemNote } from "../problems.js";
import { go, link } from "../router.js";

const WORDS = { train: "Train", reencode: "Encode anew" };

export async function page({ path: [, id], signal }) {
  const address = at("jobs", id);
  const place = h("div", { class: "page", id: "job" });
  const first = await get(address, { signal });
  const buttons = h("div", { class: "actions" });
  const after = async () => {
    try {
      show(await get(address, { signal }));
    } catch (error) {
      if (error.code !== "job_not_found") throw error;
      go("#/jobs");
    }
  };
  const show = (job) => {
    place.replaceChildren(...content(job));
    if (buttons.dataset.state !== `${job.state} ${job.cancelling}`) buttons.replaceChildren(jobActions(job, after));
    buttons.dataset.state = `${job.state} ${job.cancelling}`;
  };
  show(first);
  if (!ended(first)) {
    poll(async () => {
      const job = await get(address, { signal });
      show(job);
      return ended(job) ? null : job;
    }, signal).catch((error) => {
      if (!signal.aborted) place.append(problemNote(described(error)));
    });
  }
  const title = `${WORDS[first.kind]} ${first.target}`;
  const head = pageHead([WORDS[first.kind], " ", data(first.target)], {
    crumbs: h("a", { href: "#/jobs" }, "Jobs"),
    actions: [buttons],
  });
  return { title, node: h("div", { class: "page" }, head, place) };
}

function content(job) {
  const { result, progress } = job;
  const model = job.kind === "train" ? job.target : result?.after;
  return [
    panel(
      "Progress",
      h("div", { role: "status" }, jobState(job)),
      facts([
        ["Queued", time(job.created), true],
        ["Begun", time(job.started), true],
        ["Ended", time(job.ended), true],
        ["Attempts", job.attempts, true],
        ["Loss", progress?.loss?.toFixed(4)],
        ["Took", result?.seconds && duration(result.seconds)],
        ["Objects", result?.objects && count(result.objects)],
        ["Items", result?.items && count(result.items)],
        ["Loss at the end", result?.loss?.toFixed(4)],
      ]),
      result && h("p", {}, "The model: ", h("a", { href: link(["models", model]) }, data(model))),
    ),
    result?.losses?.length > 1 &&
      panel("Training loss", curve(result.losses, `Training loss over ${result.losses.length} iterations`)),
    result?.evaluation && quality(result),
    panel("Asked for", h("pre", { tabIndex: 0 }, JSON.stringify(job.parameters, null, 2))),
  ].filter(Boolean);
}
