// The frame: navigation, and one page at a time.
import { get } from "./api.js";
import { data, h } from "./dom.js";
import { icon } from "./parts/icons.js";
import { described, problemNote } from "./problems.js";
import { here } from "./router.js";
import { key, known, may, signOut, who, whenRefused } from "./session.js";
import { applyTheme, themeSwitch } from "./theme.js";
import { signInPage } from "./pages/signin.js";

const NAV = [
  ["search", "Search"],
  ["collections", "Collections"],
  ["models", "Models"],
  ["jobs", "Jobs"],
  ["server", "Server"],
];
const PAGES = {
  search: () => import("./pages/search.js"),
  collections: () => import("./pages/collections.js"),
  collection: () => import("./pages/collection.js"),
  items: () => import("./pages/items.js"),
  item: () => import("./pages/item.js"),
  models: () => import("./pages/models.js"),
  model: () => import("./pages/model.js"),
  jobs: () => import("./pages/jobs.js"),
  job: () => import("./pages/job.js"),
  server: () => import("./pages/server.js"),
};

const main = document.getElementById("main");
const progress = document.getElementById("progress");
let leaving = new AbortController();
let current = null; // the page that is shown: its name, and how it takes another address, if it does

function pageName(path) {
  const [head, , third, fourth] = path;
  if ((head === "items" && path.length === 1) || (head === "collections" && third === "items" && path.length === 3)) return "items";
  if (head === "collections" && third === "items" && fourth !== undefined) return "item";
  if (path.length === 2 && ["collections", "models", "jobs"].includes(head)) return head.slice(0, -1);
  return path.length <= 1 && Object.hasOwn(PAGES, head ?? "search") ? (head ?? "search") : null;
}

async function show() {
  const { path, query } = here();
  const name = pageName(path);
  const tab = name === "items" ? "collections" : (path[0] ?? "search");
  navigation(tab);
  if (current?.name === name && current.update) {
    current.update(query);
    return;
  }
  leaving.abort();
  leaving = new AbortController();
  const { signal } = leaving;
  const first = current === null;
  const late = setTimeout(() => (progress.hidden = false), 150);
  main.setAttribute("aria-busy", "true");
  let page;
  try {
    if (name === null) page = missing();
    else {
      if (!who()) known(await get("caller", { signal }));
      account();
      navigation(tab);
      page = await (await PAGES[name]()).page({ path, query, signal });
    }
  } catch (error) {
    if (signal.aborted) return;
    page = error.status === 401 ? signInPage(error, restart) : failed(described(error), tab);
  } finally {
    clearTimeout(late);
    if (!signal.aborted) {
      progress.hidden = true;
      main.removeAttribute("aria-busy");
    }
  }
  if (signal.aborted) return;
  current = { name, update: page.update };
  main.replaceChildren(page.node);
  document.title = `${page.title} · CCQ Search`;
  if (!first) {
    window.scrollTo(0, 0);
    (main.querySelector("[autofocus], h1") ?? main).focus({ preventScroll: true });
  }
}

function restart() {
  current = null;
  show();
}

function missing() {
  const text = h("p", {}, "There is no such page. ", h("a", { href: "#/search" }, "To the search"));
  return { title: "No such page", node: h("div", { class: "page" }, h("h1", { tabIndex: -1 }, "No such page"), text) };
}

function failed(problem, tab) {
  const expected = {
    403: () => ["This page is not for this key", button("Sign in with another key", leave)],
    404: () => ["There is nothing here", h("a", { href: `#/${tab}` }, `To the ${tab}`)],
  }[problem.code === "unknown" ? null : problem.status];
  const [text, next] = expected?.() ?? ["This page cannot be shown", button("Try again", restart)];
  const head = h("h1", { tabIndex: -1 }, text);
  return { title: text, node: h("div", { class: "page" }, head, problemNote(problem), h("div", {}, next)) };
}

const button = (text, click) => h("button", { type: "button", on: { click } }, text);

function leave() {
  signOut();
  restart();
}

function navigation(at) {
  const open = NAV.filter(([name]) => name !== "jobs" || !who() || may("admin"));
  const entries = open.map(([name, text]) =>
    h("li", {}, h("a", { href: `#/${name}`, "aria-current": name === at ? "page" : null }, icon(name), text)),
  );
  document.getElementById("nav").replaceChildren(h("ul", {}, entries));
}

function account() {
  const caller = who();
  document
    .getElementById("shell-foot")
    .replaceChildren(
      ...[
        key() && caller && h("span", { class: "where" }, "Signed in as ", h("strong", {}, data(caller.name, 40))),
        key() && h("button", { type: "button", class: "quiet small", on: { click: leave } }, "Sign out"),
        themeSwitch(),
        h("a", { class: "where", href: "../docs" }, "API documentation"),
      ].filter(Boolean),
    );
}

whenRefused(() => {
  if (!who()) return; // the page itself asks for the caller, and shows what to do
  known(null);
  restart();
});
document.getElementById("skip").addEventListener("click", (event) => {
  event.preventDefault(); // addresses behind `#` are those of pages
  main.focus();
});
window.addEventListener("hashchange", show);
window.addEventListener("ccq-reload", restart);
applyTheme();
account();
show();
