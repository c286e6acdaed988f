// The comparison: the decisions of the server's algorithms about the same traffic.

import { $, element, json, plural, say, shape } from "./dom.js";

const words = {
  "fixed-window": ["Fixed window", "counts per minute of the clock"],
  "sliding-window-counter": ["Sliding window counter", "the last minute, from two counters"],
  "sliding-window-log": ["Sliding window log", "the last minute, from every request"],
  "token-bucket": ["Token bucket", "a burst, then a steady rate"],
  "leaky-bucket": ["Leaky bucket", "a queue that is served at a steady rate"],
};

const traffic = {
  steady: (n) => `Exactly ${n} requests a minute, evenly, for three minutes. An exact limit denies none. The sliding window counter is an approximation.`,
  edge: (n) => `${n} requests in the last ten seconds of a minute, and ${n} in the first ten seconds of the next. Each minute of the clock is within the limit, so a fixed window admits all of them.`,
  overload: (n) => `${2 * n} requests a minute, evenly, for three minutes: twice the limit. Each algorithm admits about its rate, at different times.`,
};

export function compare() {
  const form = $("comparison");
  form.addEventListener("change", run);
  form.addEventListener("submit", (event) => { event.preventDefault(); run(); });
  return run();
}

let latest = 0; // older answers that arrive late are dropped

async function run() {
  if (!$("comparison").reportValidity()) return;
  const asked = (latest += 1);
  const kind = new FormData($("comparison")).get("traffic");
  const query = new URLSearchParams({ traffic: kind, requests: $("per-minute").value, burst: $("bucket").value });
  try {
    const began = performance.now();
    const found = await json(`/demo/compare?${query}`);
    if (asked === latest) show(found, performance.now() - began);
  } catch (error) {
    if (asked !== latest) return;
    $("results").tBodies[0].replaceChildren(); // the results of the previous form
    say($("traffic-says"), `No comparison: ${error.message}.`);
    $("traffic-says").classList.add("wrong");
    say($("method"), "");
  }
}

function show(found, took) {
  say($("traffic-says"), traffic[found.traffic](found.requests));
  $("traffic-says").classList.remove("wrong");
  $("results").tBodies[0].replaceChildren(...found.results.map((result) => row(found, result)));
  $("results").dataset.traffic = found.traffic;
  say($("method"), `${plural(found.arrivals_ms.length, "request")} over ${found.span_ms / 60_000} minutes, sent to each algorithm in ${Math.round(took)} ms. ` +
    "The server runs the real algorithms with a clock that it sets. The result is exact, and always the same.");
}

function row(found, result) {
  const [title, does] = words[result.algorithm];
  const times = result.fullest / found.requests;
  const promise = promised(found, result);
  const over = result.fullest > promise;
  const verdict = over ? `${times.toFixed(1)} times the limit`
    : promise > found.requests ? `as promised: a burst of ${found.burst}, and ${found.requests} a minute` : `the limit is ${found.requests}`;
  const cell = (label, value, attributes = {}) => element("td", attributes, element("span", { class: "label" }, label), String(value));
  const most = cell("Most in any minute", result.fullest, { class: over ? "most over" : "most" });
  most.append(element("small", {}, verdict));
  return element("tr", { "data-algorithm": result.algorithm },
    element("th", { scope: "row" }, title, element("small", {}, does)),
    element("td", { class: "lane" }, lane(found, result, over)),
    cell("Allowed", result.admitted), cell("Denied", result.denied), most);
}

/** How many requests an algorithm promises to serve in any minute at most. A token bucket promises its burst and the rate. */
const promised = ({ requests, burst }, { algorithm }) => (algorithm === "token-bucket" ? requests + burst : requests);

/** Up: served requests. Down: denied requests. Behind: the fullest minute. */
function lane(found, result, over) {
  const width = 1000;
  const x = (ms) => ((ms / found.span_ms) * width).toFixed(1);
  const served = result.served_ms.filter((ms) => ms <= found.span_ms).map((ms) => `M${x(ms)} 31V8`);
  const refused = found.arrivals_ms.filter((_, i) => !result.allowed[i]).map((ms) => `M${x(ms)} 37V60`);
  const turns = [];
  for (let ms = found.window_ms; ms < found.span_ms; ms += found.window_ms) turns.push(`M${x(ms)} 0V68`);
  const from = result.fullest_at_ms;
  const label = `${result.admitted} allowed and ${result.denied} denied; ${result.fullest} served within a minute from second ${(from / 1000).toFixed(1)} on`;
  return shape("svg", { viewBox: `0 0 ${width} 68`, preserveAspectRatio: "none", role: "img", "aria-label": label },
    shape("rect", { class: over ? "full over" : "full", x: x(from), y: 0, width: x(Math.min(found.window_ms, found.span_ms - from)), height: 68 }),
    shape("path", { class: "turn", d: turns.join("") }),
    shape("path", { class: "base", d: `M0 34H${width}` }),
    shape("path", { class: "served", d: served.join("") }),
    shape("path", { class: "refused", d: refused.join("") }));
}
