// Addresses of pages: what stands behind the `#`, so that ids and queries are never sent to the server as an address.

/** The page that the address bar names: `path`, its decoded parts, and `query`. */
export function here() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  return { path: path.split("/").filter(Boolean).map(decoded), query: new URLSearchParams(query) };
}

/** The address of a page: its parts, and what is asked of it. Empty values are left out. */
export function link(parts, query = {}) {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    for (const each of Array.isArray(value) ? value : [value]) {
      if (each !== undefined && each !== null && each !== "") search.append(name, each);
    }
  }
  const text = search.toString();
  return `#/${parts.map(encodeURIComponent).join("/")}${text ? `?${text}` : ""}`;
}

/** Go to an address; in place of the present one if it is only put more exactly. */
export function go(address, { replace = false } = {}) {
  if (address === location.hash) window.dispatchEvent(new HashChangeEvent("hashchange"));
  else if (replace) {
    history.replaceState(null, "", address);
    window.dispatchEvent(new HashChangeEvent("hashchange"));
  } else location.hash = address;
}

function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
