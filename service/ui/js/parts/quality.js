// How well a trained model finds the other half of objects that it was not trained on.
import { data, h } from "../dom.js";
import { count, percent } from "../format.js";
import { panel, table } from "./fields.js";

/** The panel of a training's result; null if nothing was held out. */
export function quality({ evaluation, held_out: heldOut }) {
  if (!evaluation?.length) return null;
  const rows = evaluation.map(({ query, database, codes, floats }) => [
    [data(query), " → ", data(database)],
    ...["recall_at_1", "recall_at_10", "recall_at_100"].map((name) => percent(codes[name], 1)),
    codes.mean_rank.toFixed(1),
    percent(floats.recall_at_10, 1),
  ]);
  const columns = [
    ["Query → database"],
    ["First", true],
    ["Among 10", true],
    ["Among 100", true],
    ["Mean rank", true],
    ["Among 10, by floats", true],
  ];
  return panel(
    "Held-out quality",
    h(
      "p",
      { class: "soft small" },
      `How often ${count(heldOut)} objects that it was not trained on find themselves in the other modality, by codes.`,
    ),
    table("Held-out quality", columns, rows),
  );
}
