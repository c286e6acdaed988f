// Sends requests, at once or at a rate.

import { ask } from "./server.js";

const atOnce = 6; // browsers open six connections; more requests wait

/** Sends count requests, and calls answered with each answer. It ends early if the signal aborts. */
export async function burst({ count, perSecond, request, answered, signal }) {
  const began = performance.now();
  const pending = [];
  const workers = perSecond > 0 ? count : Math.min(atOnce, count);
  let next = 0;
  const work = async () => {
    while (next < count && !signal.aborted) {
      next += 1;
      await one(request, answered, signal);
    }
  };
  for (let i = 0; i < workers && !signal.aborted; i += 1) {
    if (perSecond > 0) {
      await pause(began + (i * 1000) / perSecond - performance.now(), signal);
      if (signal.aborted) break;
      pending.push(one(request, answered, signal));
    } else {
      pending.push(work());
    }
  }
  await Promise.all(pending);
  return performance.now() - began;
}

async function one({ method, path, body, key }, answered, signal) {
  const headers = key ? { "X-API-Key": key } : {};
  const began = performance.now();
  try {
    const response = await ask(path, { method, body, headers, signal });
    const text = await response.text();
    answered({ method, path, status: response.status, headers: response.headers, body: text, began, ended: performance.now() });
  } catch {
    if (!signal.aborted) answered({ method, path, status: 0, headers: new Headers(), body: "", began, ended: performance.now() });
  }
}

function pause(milliseconds, signal) {
  if (milliseconds <= 0) return Promise.resolve();
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, milliseconds);
    signal.addEventListener("abort", () => { clearTimeout(timer); resolve(); }, { once: true });
  });
}
