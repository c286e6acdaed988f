// Answers the page in place of a server: the limits of package algorithms, compiled to WebAssembly.

import recording from "./redis-dies.json";

export const words = {
  decides: "Your browser",
  silent: "the limits could not be loaded",
  sandbox: "",
  outage: "The example server, started with -redis and -demo-outage, lets you cut the connection yourself.",
};

/** Answers a request as fetch does. */
export async function ask(path, { method = "GET", body = "", signal } = {}) {
  if (path === "/demo/redis-dies.json") return new Response(JSON.stringify(recording));
  const answer = await loaded();
  const { status, fields, body: text, hold } = answer(method, path, body);
  if (hold > 0) await new Promise((resolve) => { setTimeout(resolve, hold); });
  signal?.throwIfAborted();
  return new Response(text, { status, headers: fields });
}

/** Looks at the level of a sandbox ten times a second, and sends each change as an event. */
export function listen(path) {
  const events = new EventTarget();
  let last = "";
  const timer = setInterval(async () => {
    const { status, body } = (await loaded())("GET", `${path}/level`, "");
    if (status !== 200 || body === last) return;
    last = body;
    events.dispatchEvent(new MessageEvent("level", { data: body }));
  }, 100);
  events.close = () => clearInterval(timer);
  return events;
}

let answering; // the promise of the function that answers

function loaded() {
  answering ??= painted().then(fetchLimits).then(run);
  return answering;
}

/** The page is seen first. A hidden page is not painted. */
const painted = () => new Promise((resolve) => {
  if (document.hidden) resolve();
  else requestAnimationFrame(() => setTimeout(resolve));
});

/** A script carries the program, because pages of files may not fetch other files. */
const fetchLimits = () => new Promise((resolve, reject) => {
  const script = document.createElement("script");
  script.src = "demo/limits.js";
  script.addEventListener("load", resolve);
  script.addEventListener("error", reject);
  document.head.append(script);
});

async function run() {
  const zipped = Uint8Array.from(atob(globalThis.penstockLimits), (c) => c.charCodeAt(0));
  delete globalThis.penstockLimits;
  const program = new Blob([zipped]).stream().pipeThrough(new DecompressionStream("gzip"));
  const go = new globalThis.Go();
  const { instance } = await WebAssembly.instantiateStreaming(new Response(program, { headers: { "Content-Type": "application/wasm" } }), go.importObject);
  go.run(instance);
  performance.mark("limits");
  return globalThis.penstock;
}
