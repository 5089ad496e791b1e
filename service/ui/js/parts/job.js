// A job: how far it is, and what can be done about it.
import { at, del } from "../api.js";
import { confirm } from "../dialogs.js";
import { data, h } from "../dom.js";
import { duration, percent } from "../format.js";
import { attempt } from "../toasts.js";
import { pill } from "./fields.js";

export const ended = ({ state }) => state !== "queued" && state !== "running";

/** State and progress. */
export function jobState(job) {
  const { progress, state } = job;
  if (state !== "running" || !progress)
    return h(
      "span",
      {},
      pill(job.cancelling ? "cancelling" : state),
      job.error && [" ", h("span", { class: "small" }, data(job.error.detail, 160))],
    );
  const { phase, fraction, done, total, seconds_left: left } = progress;
  const bar = h("progress", { max: 1, "aria-label": `Progress: ${phase}` });
  if (fraction !== null) bar.value = fraction;
  const far = fraction === null ? String(done) : `${percent(fraction)} (${done} of ${total})`;
  return h(
    "div",
    { class: "stack" },
    h(
      "div",
      { class: "row" },
      pill(job.cancelling ? "cancelling" : state),
      h(
        "span",
        { class: "small soft number" },
        data(phase),
        ` ${far}`,
        left === null ? "" : `, about ${duration(left)} left`,
      ),
    ),
    bar,
  );
}

/** The button that cancels a job, or forgets one that has ended; `again` is called afterwards. */
export function jobActions(job, again, { kind = "" } = {}) {
  const over = ended(job);
  const act = async () => {
    const sure =
      over ||
      (await confirm({
        title: "Cancel this job?",
        detail: "What it has done so far is lost.",
        action: "Cancel the job",
      }));
    if (sure && (await attempt(() => del(at("jobs", job.id))))) {
      button.blur();
      await attempt(again);
    }
  };
  const button = h(
    "button",
    { type: "button", class: kind, disabled: job.cancelling, on: { click: act } },
    over ? "Forget" : "Cancel",
    h("span", { class: "hush" }, " ", data(job.target)),
  );
  return button;
}
