// What the fields of an answer say about limits, for the page and in words.

import { plural } from "./dom.js";

/** A list of Structured Fields with one item: "orders";r=9;t=9. */
function item(value) {
  const match = /^"([^"]*)"((?:;\w+=-?\d+)*)/.exec(value ?? "");
  if (!match) return null;
  const found = { name: match[1] };
  for (const [, name, number] of match[2].matchAll(/;(\w+)=(-?\d+)/g)) found[name] = Number(number);
  return found;
}

const number = (value) => (value === null || value === "" ? undefined : Number(value));

/** What is left, of how much, and when it is all back; undefined is what no field says. */
export function quota(headers) {
  const left = item(headers.get("RateLimit"));
  const policy = item(headers.get("RateLimit-Policy"));
  const either = (name) => number(headers.get(name)) ?? number(headers.get(`X-${name}`));
  return {
    left: left?.r ?? either("RateLimit-Remaining"),
    limit: policy?.q ?? either("RateLimit-Limit"),
    window: policy?.w,
    reset: either("RateLimit-Reset") ?? left?.t,
    retry: number(headers.get("Retry-After")),
  };
}

const seconds = (n) => plural(Number(n), "second");

const meanings = {
  "RateLimit-Policy": (value) => {
    const p = item(value);
    return p && `The policy “${p.name}” lets ${plural(p.q, "unit")} be used at once, and they come back within ${seconds(p.w)}.`;
  },
  "RateLimit": (value) => {
    const l = item(value);
    if (!l) return "";
    if (l.t === undefined) return `Of “${l.name}” ${plural(l.r, "unit is", "units are")} left.`;
    if (l.r === 0) return `Of “${l.name}” nothing is left for ${seconds(l.t)}.`;
    return `Of “${l.name}” ${plural(l.r, "unit is", "units are")} left, and should last ${seconds(l.t)}.`;
  },
  "RateLimit-Limit": (value) => `${plural(Number(value), "unit is", "units are")} the most that can be used at once.`,
  "RateLimit-Remaining": (value) => `${plural(Number(value), "unit is", "units are")} left right now.`,
  "RateLimit-Reset": (value, status) =>
    status === 429 ? `The next request is admitted in ${seconds(value)}.` : `The whole limit is back in ${seconds(value)}.`,
  "Retry-After": (value, status) =>
    status === 503
      ? `Nobody could decide. Try again in ${seconds(value)}; other clients are told another time, so that not all come at once.`
      : `Come back in ${seconds(value)}: before, the same request is denied; then, it is admitted if you have sent no other meanwhile.`,
  "Cache-Control": (value) => (value === "no-store" ? "No cache may keep this answer, and give it to somebody else." : ""),
  "Content-Type": (value) =>
    value.includes("problem+json") ? "The body says what went wrong, in the form that RFC 9457 gives problems." : "The body is what the route answers.",
  "WWW-Authenticate": () => "The API wants to know who asks: a key in X-API-Key, or a bearer token.",
  "X-RateLimit-Limit": (value) => `${plural(Number(value), "unit")} at once, in the older spelling.`,
  "X-RateLimit-Remaining": (value) => `${plural(Number(value), "unit")} left, in the older spelling.`,
  "X-RateLimit-Reset": (value) => `When it is back, in the older spelling: ${value}.`,
};

/** The fields of an answer that this page can explain: name, value, meaning. */
export function explain(headers, status) {
  const rows = [];
  for (const [name, meaning] of Object.entries(meanings)) {
    const value = headers.get(name);
    const says = value !== null && meaning(value, status);
    if (says) rows.push({ name, value, says });
  }
  if (status === 429 && !headers.has("RateLimit-Policy") && !headers.has("RateLimit-Limit") && !headers.has("X-RateLimit-Limit")) {
    rows.unshift({ name: "RateLimit", value: "not sent", says: "A limit has denied that is not advertised: not the one above, but one that guards what all share." });
  }
  if (hopeless(headers, status)) {
    rows.push({ name: "Retry-After", value: "not sent", says: "Waiting does not help: this request costs more than the limit ever admits." });
  }
  return rows;
}

/** Whether an answer is a denial that no wait can change. */
export const hopeless = (headers, status) => status === 429 && !headers.has("Retry-After");

const statuses = {
  200: "OK", 400: "Bad Request", 401: "Unauthorized", 404: "Not Found", 405: "Method Not Allowed",
  429: "Too Many Requests", 500: "Internal Server Error", 503: "Service Unavailable",
};

/** The request and its status; a sandbox's long name is nothing to read. */
export const statusLine = ({ method, path, status }) =>
  `${method} ${path.replace(/\/[A-Z2-7]{20,}\//, "/…/")} → ${status} ${statuses[status] ?? ""}`.trim();
