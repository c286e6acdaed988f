// The comparison: the decisions and the states of seven limits about the traffic that the visitor draws.

import { $, element, json, plural, say, shape } from "./dom.js";
import { expression } from "./code.js";
import { words } from "./server.js";
import { arrivals, Drawing } from "./traffic.js";

const span = 120_000; // ms of the picture
const clock = (ms) => `${Math.floor(ms / 60_000)}:${String(Math.floor(ms / 1000) % 60).padStart(2, "0")}`;

/** The limits of the form: name, meaning, text, the name of the state, and how many requests a minute may have. */
const rows = ({ n, burst, slots }) => [
  ["Token bucket", "a burst, then a steady rate", `token-bucket ${n}/1m burst ${burst}`, "level", `up to ${burst + n - 1}`],
  ["Leaky bucket", "a queue that is served at a steady rate", `leaky-bucket ${n}/1m burst ${burst}`, "queue", `up to ${n}`],
  ["Sliding window counter", "the last minute, from two counters", `sliding-window-counter ${n}/1m`, "weighted counters", `about ${n}, up to ${2 * n - 1}`],
  ["Sliding window log", "the last minute, from every request", `sliding-window-log ${n}/1m`, "log", `up to ${n}`],
  ["Fixed window", "each minute of the clock", `fixed-window ${n}/1m`, "counter", `up to ${2 * n}`],
  ["Per day", "each day of the calendar; midnight is at 1:00", `calendar-window ${n}/day`, "counter", `up to ${2 * n}, around midnight`],
  ["Concurrent", "requests that run at the same time; each runs for 4 s", `concurrent ${slots}/30s`, "running", "no bound"],
];

const kinds = {
  turn: ({ n }) => `${n} requests in the last ten seconds of a minute, and ${n} in the first ten seconds of the next.`,
  steady: ({ n }) => `${n} requests a minute, evenly: exactly the limit. The sliding window counter is an approximation, and denies a few.`,
  overload: ({ n }) => `${2 * n} requests a minute, evenly: twice the limit.`,
  drawn: () => "Your own traffic.",
};

let drawing;
let latest = 0; // older answers that arrive late are dropped
let shown = []; // the results on the page

export function limits() {
  drawing = new Drawing($("traffic"), () => {
    document.querySelector("input[value=drawn]").checked = true;
    run();
  });
  const form = $("comparison");
  form.addEventListener("change", ({ target }) => {
    const kind = new FormData(form).get("traffic");
    if (kind !== "drawn" && form.reportValidity()) drawing.set(kind, values().n);
    else if (target.value === "drawn") drawing.clear();
    run();
  });
  form.addEventListener("submit", (event) => event.preventDefault());
  $("look").addEventListener("input", look);
  drawing.set("turn", 10);
  return run();
}

const values = () => ({ n: Number($("per-minute").value), burst: Number($("bucket").value), slots: Number($("at-a-time").value) });

async function run() {
  if (!$("comparison").reportValidity()) return;
  const asked = (latest += 1);
  const kind = new FormData($("comparison")).get("traffic");
  const form = values();
  const at = arrivals(drawing.bars);
  if (at.length === 0) {
    say($("traffic-says"), "Draw requests above: press and move, or use the arrow keys.");
    return;
  }
  const query = new URLSearchParams({ at: at.join(",") });
  for (const [, , limit] of rows(form)) query.append("limit", limit);
  try {
    const began = performance.now();
    const { results } = await json(`/demo/compare?${query}`);
    if (asked === latest) show({ kind, form, at, results, took: performance.now() - began });
  } catch (error) {
    if (asked !== latest) return;
    $("results").tBodies[0].replaceChildren(); // the results of the previous form
    shown = [];
    say($("traffic-says"), `No comparison: ${error.message}.`);
    $("traffic-says").classList.add("wrong");
    say($("method"), "");
  }
}

function show({ kind, form, at, results, took }) {
  say($("traffic-says"), kinds[kind](form));
  $("traffic-says").classList.remove("wrong");
  shown = results.map((result, i) => ({ ...result, at, names: rows(form)[i] }));
  $("results").tBodies[0].replaceChildren(...shown.map(row));
  $("results").dataset.traffic = kind;
  $("results").dataset.sent = at.length;
  look();
  say($("method"), `${plural(at.length, "request")} in two minutes, sent to each limit in ${Math.round(took)} ms. ` +
    `${words.decides} runs the real algorithms with a clock that it sets. The result is exact, and always the same.`);
}

function row(result) {
  const [title, does, limit, , promise] = result.names;
  const cell = (label, value) => element("td", {}, element("span", { class: "label" }, label), String(value));
  const most = cell("Most in any minute", result.fullest);
  most.classList.add("most");
  most.append(element("small", {}, promise));
  return element("tr", { "data-algorithm": result.algorithm },
    element("th", { scope: "row" }, title, element("small", {}, does), element("code", {}, goName(limit))),
    element("td", { class: "lane" }, lane(result), element("small", { class: "state" })),
    cell("Allowed", result.served_ms.length), cell("Denied", result.allowed.filter((a) => !a).length), most);
}

function goName(limit) {
  const [algorithm, quantity] = limit.split(" ");
  const [n] = quantity.split("/");
  if (algorithm === "calendar-window") return `PerDay(${n}, nil)`;
  return expression(limit).replace("algorithms.", "");
}

/** Up: served requests. Down: denied requests. Below: the state. Behind: the fullest minute. */
function lane(result) {
  const width = 1000;
  const x = (ms) => ((ms / span) * width).toFixed(1);
  const served = result.served_ms.filter((ms) => ms <= span).map((ms) => `M${x(ms)} 31V8`);
  const refused = result.at.filter((_, i) => !result.allowed[i]).map((ms) => `M${x(ms)} 35V56`);
  const y = (used) => (98 - (used / result.capacity) * 34).toFixed(1);
  const level = result.state.filter(([ms]) => ms <= span).map(([ms, used]) => `H${x(ms)}V${y(used)}`).join("");
  const from = result.fullest_at;
  const label = `${result.served_ms.length} allowed; ${result.fullest} served within a minute from ${clock(from)} on`;
  return shape("svg", { viewBox: `0 0 ${width} 100`, preserveAspectRatio: "none", role: "img", "aria-label": label },
    shape("rect", { class: "full", x: x(from), y: 0, width: x(Math.min(60_000, span - from)), height: 62 }),
    shape("path", { class: "turn", d: `M${x(60_000)} 0V100` }),
    shape("path", { class: "base", d: `M0 33H${width}` }),
    shape("path", { class: "served", d: served.join("") }),
    shape("path", { class: "refused", d: refused.join("") }),
    shape("path", { class: "cap", d: `M0 64H${width}` }),
    shape("path", { class: "level", d: `M0 98${level}H${width}V98Z` }),
    shape("path", { class: "at", d: "" }));
}

/** Shows the state of each limit at the chosen instant. */
function look() {
  const ms = Number($("look").value) * 1000;
  say($("look-says"), `State at ${clock(ms)}`);
  $("look").setAttribute("aria-valuetext", clock(ms));
  [...$("results").tBodies[0].rows].forEach((tr, i) => {
    const result = shown[i];
    if (!result) return;
    tr.querySelector(".at").setAttribute("d", `M${(ms / span) * 1000} 0V100`);
    const used = result.state.filter(([at]) => at <= ms).at(-1)?.[1] ?? 0;
    say(tr.querySelector(".state"), `${result.names[3]}: ${used} of ${result.capacity}${detail(result, ms)}`);
  });
}

/** What an algorithm stores at an instant, beside the number. */
function detail({ algorithm, served_ms: served }, ms) {
  const begin = Math.floor(ms / 60_000) * 60_000;
  const between = (from, to) => served.filter((at) => at >= from && at < to && at <= ms).length;
  switch (algorithm) {
    case "sliding-window-counter":
      return ` = ${between(begin, begin + 60_000)} in this minute + ${Math.round(100 * (1 - (ms - begin) / 60_000))} % of ${between(begin - 60_000, begin)} in the one before`;
    case "sliding-window-log": {
      const oldest = served.find((at) => at > ms - 60_000 && at <= ms);
      return oldest === undefined ? "" : `; the oldest entry is of ${clock(oldest)}`;
    }
    case "fixed-window":
      return ` since ${clock(begin)}`;
    case "calendar-window":
      return ms < 60_000 ? " of the old day" : " of the new day";
    default:
      return "";
  }
}
