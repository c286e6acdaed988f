// What every part needs of the document.

/** The element with an id. */
export const $ = (id) => document.getElementById(id);

/** A new element with text, or with other elements, in it. */
export function element(name, attributes = {}, ...content) {
  return fill(document.createElement(name), attributes, content);
}

/** The same for a part of a drawing. */
export function shape(name, attributes = {}, ...content) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, content);
}

function fill(node, attributes, content) {
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...content);
  return node;
}

/** Changes a text only if it is another one: screen readers read what is set. */
export function say(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/** JSON that the server answered, or an error with its words. */
export async function json(path, options) {
  const response = await ask(path, options).catch(() => { throw new Error("the server does not answer"); });
  const body = await response.json().catch(() => ({}));
  if (!response.ok) {
    const error = new Error(body.error ?? refusal(response));
    error.status = response.status;
    throw error;
  }
  return body;
}

function refusal({ status, headers }) {
  const wait = headers.get("Retry-After");
  return status === 429 && wait ? `too many requests, try again in ${plural(Number(wait), "second")}` : `the server answered ${status}`;
}

/**
 * A request without cookies, of which this server has none. Browsers open six connections for those, and six others
 * for the events of a sandbox, and for pages: so tabs that listen are in nobody's way.
 */
export const ask = (path, options) => fetch(path, { cache: "no-store", credentials: "omit", ...options });

/** The same for what is sent as JSON. */
export const post = (path, body) => json(path, { method: "POST", body: JSON.stringify(body) });

/** A number with its digits in groups of three. */
export const digits = (n) => String(n).replace(/\B(?=(\d{3})+$)/g, "\u202f");

export const plural = (n, one, many = `${one}s`) => `${digits(n)} ${n === 1 ? one : many}`;
