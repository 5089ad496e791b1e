// How well a trained model finds the other half of objects that it was not trained on, and their neighbours.
import { data, h } from "../dom.js";
import { count, percent } from "../format.js";
import { panel, table } from "./fields.js";

/** The panel of a training's result; null if nothing was held out. */
export function quality({ evaluation, neighbours, held_out: heldOut }) {
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
    ...(neighbours?.length ? nearest(neighbours) : []),
  );
}

function nearest(neighbours) {
  const rows = neighbours.map(({ modality, codes, rescored_4, rescored_30, floats }) => [
    data(modality),
    ...[codes, rescored_4, rescored_30, floats].map((share) => percent(share, 1)),
  ]);
  const columns = [["Neighbours of"], ["By codes", true], ["Rescored, 4×", true], ["30×", true], ["By floats", true]];
  return [
    h(
      "p",
      { class: "soft small" },
      "How many of the ten objects whose features are nearest to an object's own, by their cosine, are among the first ten.",
    ),
    table("Neighbours by the features themselves", columns, rows),
  ];
}
