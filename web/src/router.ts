/** Addresses are in the hash: `#/games/hour/12?ply=30`. */
import { Store } from "./store";

export interface Route {
  parts: string[];
  query: URLSearchParams;
}

function parse(hash: string): Route {
  const [pathname = "", query = ""] = hash.replace(/^#\/?/, "").split("?", 2);
  const parts = pathname.split("/").filter(Boolean).map(safeDecode);
  return { parts, query: new URLSearchParams(query) };
}

function safeDecode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export const route = new Store<Route>(parse(location.hash));

addEventListener("hashchange", () => route.set(parse(location.hash)));

/** The address of a page: `link(["runs", name], {compare: "a,b"})`. */
export function link(parts: (string | number)[], query: Record<string, string | number> = {}) {
  const address = parts.map((part) => encodeURIComponent(String(part))).join("/");
  const text = new URLSearchParams(
    Object.entries(query).map(([key, value]) => [key, String(value)]),
  ).toString();
  return `#/${address}${text ? `?${text}` : ""}`;
}

export function go(address: string): void {
  location.hash = address;
}

/** Change the address without a new entry in the history, for what changes often. */
export function replace(address: string): void {
  history.replaceState(null, "", address);
  route.set(parse(address));
}
