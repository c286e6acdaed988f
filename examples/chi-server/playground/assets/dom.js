// Helpers for the document.

import { ask, words } from "./server.js";

/** The element with an id. */
export const $ = (id) => document.getElementById(id);

/** A new element with text, or with other elements, in it. */
export function element(name, attributes = {}, ...content) {
  return fill(document.createElement(name), attributes, content);
}

/** A new element of a drawing. */
export function shape(name, attributes = {}, ...content) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, content);
}

function fill(node, attributes, content) {
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...content);
  return node;
}

/** Sets a text only if it changes, because screen readers read each text that is set. */
export function say(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/** The JSON of an answer, or an error with the text of the server. */
export async function json(path, options) {
  const response = await ask(path, options).catch(() => { throw new Error(words.silent); });
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

/** Posts JSON. */
export const post = (path, body) => json(path, { method: "POST", body: JSON.stringify(body) });

/** A number with its digits in groups of three. */
export const digits = (n) => String(n).replace(/\B(?=(\d{3})+$)/g, "\u202f");

export const plural = (n, one, many = `${one}s`) => `${digits(n)} ${n === 1 ? one : many}`;
