// The limit fields of an answer, as numbers and in words.

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

/** The numbers of the fields: units left, limit, window, reset, retry. A number is undefined if no field has it. */
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
    return p && `The policy “${p.name}” allows ${plural(p.q, "unit")} at once. They come back within ${seconds(p.w)}.`;
  },
  "RateLimit": (value) => {
    const l = item(value);
    if (!l) return "";
    if (l.t === undefined) return `The policy “${l.name}” has ${plural(l.r, "unit")} left.`;
    if (l.r === 0) return `The policy “${l.name}” has no unit left for ${seconds(l.t)}.`;
    return `The policy “${l.name}” has ${plural(l.r, "unit")} left for the next ${seconds(l.t)}.`;
  },
  "RateLimit-Limit": (value) => `A client can use ${plural(Number(value), "unit")} at once.`,
  "RateLimit-Remaining": (value) => `${plural(Number(value), "unit is", "units are")} left right now.`,
  "RateLimit-Reset": (value, status) =>
    status === 429 ? `The next request is admitted in ${seconds(value)}.` : `The whole limit is back in ${seconds(value)}.`,
  "Retry-After": (value, status) =>
    status === 503
      ? `The service cannot serve the request now. Try again in ${seconds(value)}. Other clients receive other times, so that they do not come back together.`
      : `Send the same request again in ${seconds(value)}. Earlier it is denied. Then it is admitted, if you have sent no other one.`,
  "Cache-Control": (value) => (value === "no-store" ? "Caches must not store this answer." : ""),
  "Content-Type": (value) =>
    value.includes("problem+json") ? "The body describes the problem (RFC 9457)." : "The body is the answer of the route.",
  "WWW-Authenticate": () => "The API needs a key in X-API-Key, or a bearer token.",
  "X-RateLimit-Limit": (value) => `A client can use ${plural(Number(value), "unit")} at once.`,
  "X-RateLimit-Remaining": (value) => `${plural(Number(value), "unit is", "units are")} left right now.`,
  "X-RateLimit-Reset": (value) => `The whole limit is back at ${value}, in Unix seconds.`,
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
    rows.unshift({ name: "RateLimit", value: "not sent", says: "A hidden limit has denied the request, not the limit above." });
  }
  if (hopeless(headers, status)) {
    const why = status === 403 ? "the limit admits no request" : "the request costs more than the limit";
    rows.push({ name: "Retry-After", value: "not sent", says: `Waiting does not help: ${why}.` });
  }
  return rows;
}

/**
 * What the limiter did with a request: "denied", "allowed", or "other" without a decision, such as the 401 of a request
 * without an API key. An allowed request may have any status: the application answers it, for example with 401 to a
 * wrong password. Such an answer has the fields of a limit.
 */
export function decision({ status, headers }) {
  if (status === 429 || hopeless(headers, status) || (status === 503 && headers.has("Retry-After"))) return "denied";
  if (status >= 200 && status < 300) return "allowed";
  return ["RateLimit", "RateLimit-Limit", "X-RateLimit-Limit"].some((name) => headers.has(name)) ? "allowed" : "other";
}

/**
 * Whether an answer is a denial that waiting cannot change. The limiter answers 403 with a problem where a limit admits
 * nobody.
 */
export const hopeless = (headers, status) =>
  !headers.has("Retry-After") && (status === 429 || (status === 403 && (headers.get("Content-Type") ?? "").includes("problem+json")));

const statuses = {
  200: "OK", 400: "Bad Request", 401: "Unauthorized", 403: "Forbidden", 404: "Not Found", 405: "Method Not Allowed",
  429: "Too Many Requests", 500: "Internal Server Error", 503: "Service Unavailable",
};

/** The request and its status, without the sandbox's long ID. */
export const statusLine = ({ method, path, status }) =>
  `${method} ${path.replace(/\/[A-Z2-7]{20,}\//, "/…/")} → ${status} ${statuses[status] ?? ""}`.trim();
