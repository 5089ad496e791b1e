// Who is signed in: an API key, kept until the tab is closed and sent to this server alone; and what it allows.
const STORED = "ccq-api-key";

let caller = null;
let onRefused = () => {};

export const key = () => sessionStorage.getItem(STORED);

/** The key is to be used from now on. */
export function signIn(given) {
  sessionStorage.setItem(STORED, given);
  caller = null;
}

/** Forget the key. */
export function signOut() {
  sessionStorage.removeItem(STORED);
  caller = null;
}

/** What to do once the server wants another key. */
export function whenRefused(handle) {
  onRefused = handle;
}

/** The server does not take the key, or wants one. */
export const refused = () => onRefused();

/** Who the server takes the caller for: `{name, scopes, collections}`. */
export function known(who) {
  caller = who;
}

export const who = () => caller;

/** Whether the key allows something: `search`, `write`, or `admin`, in one collection if one is named. */
export function may(scope, collection) {
  if (!caller) return false;
  const scoped = caller.scopes.includes(scope) || caller.scopes.includes("admin");
  return scoped && (collection === undefined || caller.collections === null || caller.collections.includes(collection));
}

/** Whether the key allows what belongs to no collection, or to all: models, jobs, snapshots. */
export const mayAll = () => may("admin") && caller.collections === null;
