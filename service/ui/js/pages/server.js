// The server: how it is, what it takes, what it has counted; its snapshots.
import { at, del, get, post } from "../api.js";
import { confirm } from "../dialogs.js";
import { data, h } from "../dom.js";
import { downloadLink } from "../download.js";
import { bytes, count, duration, time } from "../format.js";
import { samples } from "../metrics.js";
import { empty, facts, pageHead, panel, pill, table } from "../parts/fields.js";
import { described, problemNote } from "../problems.js";
import { mayAll, who } from "../session.js";
import { attempt, done } from "../toasts.js";

export async function page({ signal }) {
  const began = performance.now();
  const version = await get("version", { signal });
  const answered = (performance.now() - began) / 1000;
  const [ready, limits, metrics, snapshots] = await Promise.all([
    get("readyz", { signal }).then(() => null, described),
    get("limits", { signal }).catch(described),
    mayAll() ? get("metrics", { signal }).catch(described) : null,
    mayAll() ? get("snapshots", { signal }).catch(described) : null,
  ]);
  const caller = who();
  const node = h(
    "div",
    { class: "page" },
    pageHead("Server"),
    panel(
      "State",
      facts([
        ["Version", version.version],
        ["State", ready === null ? pill("ready") : pill("not ready"), true],
        ["Answered in", duration(answered)],
        ["You are", data(caller.name, 60), true],
        ["You may", caller.scopes.join(", "), true],
        ["In", caller.collections === null ? "all collections" : data(caller.collections.join(", ")), true],
      ]),
      ready && problemNote(ready),
    ),
    metrics && panel("So far", metrics.code ? problemNote(metrics) : counted(metrics)),
    snapshots && panel("Snapshots", snapshots.code ? problemNote(snapshots) : snapshotList(snapshots)),
    panel("Limits", limits.code ? problemNote(limits) : limitList(limits)),
  );
  return { title: "Server", node };
}

function counted(text) {
  const found = samples(text);
  const sum = (name, fits = () => true) =>
    found.filter((one) => one.name === name && fits(one.labels)).reduce((total, one) => total + one.value, 0);
  const search = ({ route }) => route?.endsWith("/search");
  const searches = sum("ccq_request_seconds_count", search);
  return facts([
    ["Requests", count(sum("ccq_requests_total"))],
    ["Failed (5xx)", count(sum("ccq_requests_total", ({ status }) => status?.startsWith("5")))],
    ["Searches", count(searches)],
    ["Mean of a search", searches ? duration(sum("ccq_request_seconds_sum", search) / searches) : null],
    ["In progress", count(sum("ccq_requests_in_progress"))],
    ["Items", count(sum("ccq_items"))],
    ["Codes", bytes(sum("ccq_code_bytes"))],
    ["Memory", bytes(sum("process_resident_memory_bytes"))],
    ["Processor time", duration(sum("process_cpu_seconds_total"))],
  ]);
}

function snapshotList(given) {
  const place = h("div");
  const show = ({ snapshots }) => {
    const rows = snapshots.toReversed().map((one) => {
      const path = at("snapshots", one.name);
      const remove = async () => {
        if (!(await confirm({ title: "Delete this snapshot?", detail: data(one.name) }))) return;
        await attempt(async () => {
          await del(path);
          show(await get("snapshots"));
        });
      };
      const items = Object.values(one.collections).reduce((total, n) => total + n, 0);
      return [
        data(one.name),
        bytes(one.size),
        count(items),
        time(one.created),
        h(
          "div",
          { class: "row" },
          downloadLink(path, `${one.name}.tar`, "Download", attempt),
          h("button", { type: "button", class: "small danger", on: { click: remove } }, "Delete"),
        ),
      ];
    });
    const columns = [["Name"], ["Size", true], ["Items", true], ["Made"], [""]];
    place.replaceChildren(rows.length > 0 ? table("Snapshots", columns, rows) : empty("There is no snapshot yet."));
  };
  const make = h("button", { type: "button" }, "Make a snapshot");
  make.addEventListener("click", async () => {
    make.disabled = true;
    await attempt(async () => {
      await post("snapshots");
      done("The snapshot is complete.");
      show(await get("snapshots"));
    });
    make.disabled = false;
  });
  show(given);
  return h(
    "div",
    { class: "stack" },
    h("p", { class: "soft small" }, "Copies of everything that the server holds but its keys, made while it serves."),
    place,
    h("div", {}, make),
  );
}

function limitList(limits) {
  const entries = Object.entries(limits)
    .filter(([, value]) => typeof value !== "object" || value === null)
    .map(([name, value]) => [
      name.replaceAll("_", " "),
      value === null ? "no limit" : name.endsWith("bytes") ? bytes(value) : count(value),
      true,
    ]);
  return facts(entries);
}
