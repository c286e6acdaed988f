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
  const response = await fetch(path, { cache: "no-store", ...options });
  const body = await response.json().catch(() => ({}));
  if (!response.ok) {
    const error = new Error(body.error ?? body.title ?? `The server answered ${response.status}.`);
    error.status = response.status;
    throw error;
  }
  return body;
}

/** The same for what is sent as JSON. */
export const post = (path, body) => json(path, { method: "POST", body: JSON.stringify(body) });

export const plural = (n, one, many = `${one}s`) => `${n} ${n === 1 ? one : many}`;
