// Collections that are still being loaded, as after a start of the server.
import { get } from "../api.js";
import { poll } from "../poll.js";

/** Show the page anew as soon as none of these is being loaded any more. */
export function watchLoading(collections, signal) {
  if (!collections.some(isLoading)) return;
  const ask = async () => {
    const found = await get("collections", { signal });
    if (found.collections.some(isLoading)) return found;
    window.dispatchEvent(new Event("ccq-reload"));
    return null;
  };
  poll(ask, signal).catch(() => {}); // the next page that is opened tells what is wrong
}

const isLoading = ({ state }) => state === "loading";
