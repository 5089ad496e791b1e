// Asking again and again: often while something changes, seldom while nothing does, not at all while nobody looks.
const SHORTEST = 700;
const LONGEST = 10_000;

/**
 * Call `ask` until it returns null, or `signal` ends it. `ask` returns anything else, which shows whether there is
 * something new. What it raises ends it too.
 */
export async function poll(ask, signal) {
  let wait = SHORTEST;
  let before;
  while (!signal.aborted) {
    const found = await ask();
    if (found === null || signal.aborted) return;
    const now = JSON.stringify(found);
    wait = now === before ? Math.min(wait * 1.6, LONGEST) : SHORTEST;
    before = now;
    await pause(wait, signal);
    await visible(signal);
  }
}

function pause(milliseconds, signal) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, milliseconds);
    signal.addEventListener("abort", () => (clearTimeout(timer), resolve()), { once: true });
  });
}

function visible(signal) {
  if (!document.hidden) return null;
  return new Promise((resolve) => {
    document.addEventListener("visibilitychange", resolve, { once: true });
    signal.addEventListener("abort", resolve, { once: true });
  });
}
