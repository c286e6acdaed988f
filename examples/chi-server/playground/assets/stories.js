// Four stories: requests whose decisions the real algorithms make with a clock that the page sets, or that were recorded.

import { $, element, json, plural, say } from "./dom.js";
import { words } from "./server.js";
import { everyFrame, Stage } from "./stage.js";

const lasts = 9000; // ms of a performance
const quiet = matchMedia("(prefers-reduced-motion: reduce)");
const simulated = `${words.decides} has made these decisions with the real algorithm, and with a clock that it sets.`;

const every = (from, to, step) => Array.from({ length: Math.floor((to - from) / step) + 1 }, (_, i) => from + i * step);
const count = (marks, what, from = 0, to = Infinity) => marks.filter((mark) => mark.what === what && mark.at >= from && mark.at < to).length;

/** Sends requests to a limit of the server: a track, with its marks. */
async function decided(name, limit, at) {
  const { results: [found] } = await json(`/demo/compare?${new URLSearchParams({ at: at.join(","), limit })}`);
  return {
    name,
    levels: found.state.map(([ms, used]) => ({ at: ms, part: 1 - used / found.capacity })),
    marks: at.map((ms, i) => ({ at: ms, what: found.allowed[i] ? "allowed" : "denied", retryAt: found.retry_ms[i] ? ms + found.retry_ms[i] : undefined })),
  };
}

const all = [
  {
    title: "Redis dies",
    says: "Two instances share a limit through Redis. Redis is killed, and started again. A recording of two instances and a real Redis.",
    view: { from: -2800, to: 20_500 },
    recorded: true,
    async tracks() {
      const recording = await json("/demo/redis-dies.json");
      return recording.instances.map((requests, i) => ({
        ...recording,
        name: `Instance ${i + 1}`,
        levels: requests.map(([at, , alone, left]) => ({ at, part: left / (alone ? recording.share : recording.burst), alone: Boolean(alone) })),
        marks: requests.map(([at, allowed, , , retry]) => ({ at, what: allowed ? "allowed" : "denied", retryAt: retry ? at + retry : undefined })),
      }));
    },
    notes: ([one, other]) => {
      const { down, up, shared } = one;
      const admitted = (from, to) => count(one.marks, "allowed", from, to) + count(other.marks, "allowed", from, to);
      const rate = (from, to) => ((admitted(from, to) * 1000) / (to - from)).toFixed(1);
      return [
        [0, `The limit is ${one.words}. Both instances count in Redis, and admit ${rate(3000, down)} requests per second together after the burst.`],
        [down, "Redis is killed. No client gets an error: each instance goes on with its share, half of the limit: the band changes its colour."],
        [up, `Redis is started again, empty. Without it the instances have admitted ${rate(down, up)} requests per second together: each its share of the burst, and then its share of the rate.`],
        [shared, `The instances count together again, ${((shared - up) / 1000).toFixed(1)} s later. They have handed over what they admitted meanwhile.`],
      ];
    },
  },
  {
    title: "A burst",
    says: "15 requests arrive at once. The limit is 10 at once, then one per second.",
    view: { from: -1800, to: 14_000 },
    async tracks() {
      return [await decided("Token bucket, 10 per 10 s", "token-bucket 10/10s", [...new Array(15).fill(500), 1500, ...new Array(7).fill(6500)])];
    },
    notes: ([{ marks }]) => [
      [500, `${plural(count(marks, "allowed", 0, 1000), "request")} use the whole burst. ${count(marks, "denied", 0, 1000)} are denied, with Retry-After: 1.`],
      [1500, `One second later one unit is back, and ${plural(count(marks, "allowed", 1000, 2000), "request")} passes, as Retry-After said.`],
      [6500, `Five more seconds bring five units: ${count(marks, "allowed", 6000)} of 7 requests pass.`],
    ],
  },
  {
    title: "Polite and impatient",
    says: "Two clients with the same limit, 5 per 10 seconds. One waits for Retry-After. The other one tries again every 0.4 s.",
    view: { from: -2800, to: 20_500 },
    async tracks() {
      return [
        await decided("Polite client: waits for Retry-After", "token-bucket 5/10s", [...new Array(6).fill(0), ...every(2000, 20_000, 2000)]),
        await decided("Impatient client: tries at once", "token-bucket 5/10s", [...new Array(6).fill(0), ...every(400, 20_000, 400)]),
      ];
    },
    notes: ([polite, impatient]) => [
      [0, "Both clients use their burst of 5, and meet a denial with Retry-After: 2."],
      [2000, "The polite client returns after 2 seconds, and is admitted. Its rings have closed."],
      [12_000, "The impatient client has sent many more requests. Its denials have cost no units, and have gained none."],
      [20_000, `Both have received the same: ${count(polite.marks, "allowed")} and ${count(impatient.marks, "allowed")} answers, ` +
        `for ${polite.marks.length} and ${impatient.marks.length} requests.`],
    ],
  },
  {
    title: "The edge of a minute",
    says: "10 per minute, and 20 requests around the turn of a minute.",
    view: { from: 40_000, to: 90_000 },
    axis: "clock",
    async tracks() {
      const at = [...every(50_000, 59_000, 1000), ...every(60_000, 69_000, 1000)];
      return [
        await decided("Fixed window", "fixed-window 10/1m", at),
        await decided("Sliding window counter", "sliding-window-counter 10/1m", at),
        await decided("Sliding window log", "sliding-window-log 10/1m", at),
      ];
    },
    notes: (tracks) => [
      [50_000, "Ten requests in ten seconds use each limit."],
      [60_000, "The minute turns. The fixed window counts from 0 again."],
      [69_500, `In these 20 seconds the fixed window has admitted ${count(tracks[0].marks, "allowed")}, the counter ${count(tracks[1].marks, "allowed")}, and the log ${count(tracks[2].marks, "allowed")}.`],
    ],
  },
];

let stage;
let changed; // draws the stage
let chosen = null; // the story on the stage
let began = -Infinity; // in ms of performance.now

const names = 86; // px that the names of the lanes need, left of the first note

/** The chosen story's instants, with room for the names of the lanes on narrow screens. */
function view() {
  if (!chosen) return { from: 0, to: 1 };
  const { from, to } = chosen.view;
  return { from: from < 0 ? Math.min(from, (-to * names) / ($("story").clientWidth - names)) : from, to };
}

/** The time of the story. For a visitor who wants less motion it has ended. */
function clock() {
  if (!chosen) return 0;
  const { from, to } = view();
  return from + Math.min(1, quiet.matches ? 1 : (performance.now() - began) / lasts) * (to - from);
}

export function stories() {
  stage = new Stage($("story"), { clock, view, axis });
  changed = everyFrame(() => { stage.draw(); reveal(); }, () => (performance.now() - began < lasts + 1000 || stage.travels ? 0 : Infinity));
  for (const story of all) {
    const button = element("button", { type: "button", "aria-pressed": "false" }, story.title);
    button.addEventListener("click", () => tell(story, performance.now()));
    $("story-buttons").append(button);
  }
  return tell(all[0], -Infinity); // its end, until the visitor chooses one
}

async function tell(story, start) {
  chosen = story;
  all.forEach(({ title }, i) => $("story-buttons").children[i].setAttribute("aria-pressed", String(title === story.title)));
  delete $("story").dataset.told;
  try {
    const tracks = await story.tracks();
    if (chosen !== story) return;
    const notes = story.notes(tracks);
    began = start === -Infinity ? start : performance.now();
    stage.begin(tracks, notes.map(([at], i) => ({ at, number: i + 1 })));
    tracks.forEach(({ marks }, i) => marks.forEach((mark) => stage.add(mark, i)));
    $("story-notes").replaceChildren(...notes.map(([at, text]) => element("li", { "data-at": at }, element("b", {}, time(story, at)), ` ${text}`)));
    say($("story-says"), story.says);
    $("story").setAttribute("aria-label", `${story.title}, on a time axis. The numbers on it belong to the list below.`);
    say($("story-method"), story.recorded ? `This is a recording of make outage. ${words.outage}` : simulated);
    $("story").dataset.told = story.title;
    changed();
  } catch (error) {
    if (chosen === story) say($("story-says"), `No story: ${error.message}.`);
  }
}

/** Notes appear on the list when the story has reached them. */
function reveal() {
  const now = clock();
  for (const note of $("story-notes").children) note.classList.toggle("later", Number(note.dataset.at) > now);
}

function time({ axis: kind }, ms) {
  const seconds = Math.round(ms / 100) / 10;
  return kind === "clock" ? `${Math.floor(seconds / 60)}:${String(Math.floor(seconds % 60)).padStart(2, "0")}` : `${seconds} s`;
}

function axis(from, to, width) {
  const step = (to - from) / (width < 480 ? 3 : 6) > 5000 ? 10_000 : (to - from) / (width < 480 ? 3 : 6) > 2500 ? 5000 : 2000;
  return every(Math.ceil(from / step) * step, to, step).map((at) => ({ at, text: time(chosen, at), strong: chosen.axis === "clock" && at % 60_000 === 0 }));
}
