// Small line drawings beside words; the words say it all.
import { svg } from "../dom.js";

const PATHS = {
  search: ["M11 4a7 7 0 1 0 0 14 7 7 0 0 0 0-14z", "M16.2 16.2 21 21"],
  collections: ["M12 3 3 7.5l9 4.5 9-4.5z", "M3 12l9 4.5 9-4.5", "M3 16.5 12 21l9-4.5"],
  models: ["M12 2.8 20 7.4v9.2L12 21.2 4 16.6V7.4z", "M4 7.4l8 4.6 8-4.6", "M12 12v9.2"],
  jobs: ["M12 3.5a8.5 8.5 0 1 0 0 17 8.5 8.5 0 0 0 0-17z", "M12 7.5V12l3 2"],
  server: ["M4 4.5h16v6H4z", "M4 13.5h16v6H4z", "M7.5 7.5h.01", "M7.5 16.5h.01"],
};

export function icon(name) {
  const line = {
    fill: "none",
    stroke: "currentColor",
    "stroke-width": 1.8,
    "stroke-linecap": "round",
    "stroke-linejoin": "round",
  };
  return svg(
    "svg",
    { viewBox: "0 0 24 24", "aria-hidden": "true", ...line },
    PATHS[name].map((d) => svg("path", { d })),
  );
}
