// The live part: requests and their answers.

import { Answers } from "./answers.js";
import { burst } from "./burst.js";
import { code } from "./code.js";
import { $, digits, element, plural, say } from "./dom.js";
import { decision, hopeless, quota } from "./fields.js";
import { Gauge } from "./gauge.js";
import { routes, Sandbox, source } from "./sandbox.js";
import { words } from "./server.js";
import { everyFrame, liveAxis, Stage } from "./stage.js";

const own = "sandbox"; // the target that is no route
const past = 20_000; // ms on the picture
const future = 6_000; // room for what comes back
const still = 300; // ms before the page plays: it is seen first, and a visitor who presses at once has the server alone
const quiet = matchMedia("(prefers-reduced-motion: reduce)");

/** Makes the buttons work. */
export const live = () => new Live();

class Live {
  #routes = []; // of the API, once the server has listed them
  #redis = false;
  #server = ""; // the ID of the server's process; empty until it answers
  #gauge = new Gauge();
  #stage = new Stage($("timeline"), { clock, view: () => ({ from: clock() - past, to: clock() + future }), axis: liveAxis(past, future) });
  #sandbox = new Sandbox({
    heard: (level) => this.#heard(level),
    lost: () => this.#lost(),
    replaced: () => this.#replaced(),
  });
  #counts = { allowed: 0, denied: 0, other: 0 };
  #retryAt = -Infinity; // Infinity: never
  #last = null; // the newest answer
  #changed = everyFrame(() => this.#draw(), () => this.#pause());
  #answers = new Answers(this.#stage, this.#changed);
  #running = null; // the AbortController of the running burst
  #plays = false; // whether the page sends by itself
  #visited = false; // whether the visitor has sent
  #lent = false; // whether the page has chosen the API key, because the route needs one
  #refused = {}; // answers of the application to allowed requests, by status

  constructor() {
    $("target").addEventListener("change", () => this.#choose());
    $("one").addEventListener("click", () => this.#send(1));
    $("stop").addEventListener("click", () => this.#running?.abort());
    $("cost").addEventListener("change", () => this.#retry(-Infinity)); // the wait was for another cost
    $("send").addEventListener("change", () => this.#describe());
    document.addEventListener("visibilitychange", () => this.#listen());
    $("send").addEventListener("submit", (event) => {
      event.preventDefault();
      this.#send(Number($("count").value));
    });
  }

  /** Sends one burst by itself. The first request of the visitor begins with a new sandbox. */
  async play() {
    await Promise.all([this.#choose(), this.#restarted()]);
    await new Promise((resume) => { setTimeout(resume, still); });
    this.#plays = this.#isOwn() && !this.#visited;
    if (this.#plays) await this.#burst(15, quiet.matches ? 0 : 30);
    document.documentElement.dataset.played = "true";
  }

  /** Shows the requests that the server has. Returns nothing to say. */
  #list({ routes: list, redis }) {
    this.#routes = list;
    this.#redis = redis;
    $("outage").hidden = $("outage-says").hidden = !redis;
    $("target").append(element("optgroup", { label: "The API" },
      ...list.map((route, i) => element("option", { value: i }, `${route.title}: ${route.method} ${route.path}`))));
    return "";
  }

  #isOwn() { return $("target").value === own; }

  /** The request that the form describes. */
  #request() {
    if (this.#isOwn()) {
      const limit = this.#sandbox.limit();
      return { method: "POST", path: `${this.#sandbox.path}/requests?cost=${$("cost").value}`, algorithm: $("algorithm").value, limit, policy: own };
    }
    const route = this.#routes[Number($("target").value)];
    return { ...route, key: $("key").value, algorithm: route.limit.split(" ")[0] };
  }

  #describe() {
    const count = Number($("count").value);
    say($("how-many"), String(count || ""));
    const request = this.#request();
    if (request.limit) code(request, count, Number($("cost").value));
  }

  async #choose() {
    if (this.#plays) this.#sandbox.forget(); // the visitor gets a full limit
    this.#plays = false;
    this.#running?.abort();
    this.#busy(null);
    this.#clear();
    const mine = this.#isOwn();
    $("sandbox").hidden = $("cost-field").hidden = !mine;
    $("sandbox").disabled = $("cost").disabled = !mine; // hidden fields must not be invalid
    $("key-field").hidden = mine;
    if (!mine) {
      this.#sandbox.close();
      const route = this.#routes[Number($("target").value)];
      $("target-says").replaceChildren(element("code", {}, route.limit), element("br"), route.note);
      this.#lendKey(route);
      this.#describe();
      return;
    }
    say($("target-says"), words.sandbox);
    await this.#sandbox.open();
    this.#describe();
    this.#listen();
  }

  /** Chooses an API key for a route that needs one, until the visitor chooses another route. */
  #lendKey({ needs_key: needed }) {
    if (this.#lent && !needed) $("key").value = "";
    this.#lent = needed && ($("key").value === "" || this.#lent);
    if (needed && $("key").value === "") $("key").value = "demo-free";
  }

  /** Listens to the sandbox while the tab is visible, because a browser has six connections for all tabs. */
  #listen() {
    if (this.#isOwn() && !document.hidden) this.#sandbox.open();
    else this.#sandbox.close();
  }

  #clear() {
    this.#counts = { allowed: 0, denied: 0, other: 0 };
    this.#refused = {};
    this.#last = null;
    this.#gauge.clear();
    this.#stage.begin([{ name: "The limit, with the units left" }]);
    this.#answers.clear();
    this.#retry(-Infinity);
    $("source").hidden = true;
    say($("summary"), "");
    this.#count();
    this.#changed();
  }

  async #send(count) {
    if (!$("send").reportValidity() || (this.#running && !this.#plays)) return;
    this.#visited = true;
    if (this.#plays) { // the visitor takes over
      this.#plays = false;
      this.#running?.abort();
      this.#sandbox.forget();
      this.#clear();
    }
    await this.#burst(count, count > 1 ? Number($("pace").value) : 0);
  }

  async #burst(count, perSecond) {
    const stop = new AbortController();
    const alone = this.#plays;
    this.#busy(stop);
    this.#answers.follow();
    say($("summary"), `Sending ${plural(count, "request")}…`);
    if (this.#isOwn()) this.#sandbox.open(); // meanwhile
    const restarted = alone ? "" : await this.#restarted();
    if (this.#isOwn() && !(await this.#sandbox.open())) {
      if (this.#running === stop) this.#busy(null);
      return;
    }
    this.#describe();
    if (this.#running !== stop) return; // the visitor has chosen another route, or pressed Stop
    const before = { ...this.#counts };
    this.#refused = {};
    const request = this.#request();
    const took = await burst({
      count, request, signal: stop.signal, perSecond,
      answered: (answer) => { if (this.#running === stop) this.#answered(answer, request); },
    });
    if (this.#running !== stop) return; // the visitor has chosen another route
    this.#busy(null);
    const now = this.#counts;
    const [allowed, denied, other] = ["allowed", "denied", "other"].map((name) => now[name] - before[name]);
    const rest = other ? `, ${digits(other)} without a decision of the limiter` : "";
    const who = alone ? "The page has sent " : restarted;
    say($("summary"), `${who}${plural(allowed + denied + other, "request")} in ${(took / 1000).toFixed(2)} s: ` +
      `${digits(allowed)} allowed, ${digits(denied)} denied${rest}.${this.#applications()}${this.#again()}`);
  }

  /** The application's own answers to allowed requests. */
  #applications() {
    return Object.entries(this.#refused).map(([status, n]) => ` The application answered ${digits(n)} of the allowed requests with ${status}.`).join("");
  }

  /** Asks whether the server is another process, which has forgotten what this page shows. Returns what to say. */
  async #restarted() {
    const now = await routes().catch(() => null);
    if (!now || now.server === this.#server) return "";
    const known = this.#server !== "";
    this.#server = now.server;
    if (!known) return this.#list(now);
    this.#clear();
    if (this.#isOwn()) this.#sandbox.forget();
    return "The server has restarted, so the counts of this page begin again. ";
  }

  #again() {
    const wait = this.#wait();
    if (wait === Infinity) return " Waiting does not help.";
    return wait > 0 ? ` The last answer said: Retry-After ${plural(wait, "second")}.` : "";
  }

  #busy(stop) {
    this.#running = stop;
    // A disabled button would lose the keyboard's focus.
    for (const id of ["burst-send", "one"]) $(id).setAttribute("aria-disabled", String(stop !== null && !this.#plays));
    $("stop").setAttribute("aria-disabled", String(stop === null));
  }

  #answered(answer, request) {
    const what = decision(answer);
    this.#counts[what] += 1;
    this.#count();
    const refused = what === "allowed" && answer.status >= 400;
    if (refused) this.#refused[answer.status] = (this.#refused[answer.status] ?? 0) + 1;
    if (answer.status === 404 && this.#isOwn()) this.#sandbox.forget();

    const fields = quota(answer.headers);
    const at = clock();
    const retryAt = fields.retry === undefined ? undefined : at + fields.retry * 1000;
    const mark = this.#stage.add({ at, what: refused ? "refused" : what, retryAt });
    const rank = fields.left + (what === "denied" ? 0 : 0.5);
    const older = this.#last && answer.began < this.#last.ended && rank > this.#last.rank; // an older decision
    this.#answers.add(answer, mark, !older);
    if (older) return;
    this.#last = { ended: answer.ended, rank };
    this.#gauge.answer(fields, request.algorithm);
    this.#stage.level(this.#gauge.part());
    if (hopeless(answer.headers, answer.status)) this.#retry(Infinity);
    else if (answer.status) this.#retry(retryAt ?? -Infinity);
    this.#changed();
  }

  #retry(at) {
    this.#retryAt = at;
    this.#changed?.();
  }

  #replaced() { // the wait was for another limit
    this.#retry(-Infinity);
    this.#describe();
  }

  #count() {
    for (const [name, n] of Object.entries(this.#counts)) say($(name), digits(n));
  }

  #heard(level) {
    if (!this.#isOwn()) return;
    this.#gauge.level(level);
    this.#stage.level(this.#gauge.part());
    this.#changed();
    $("source").hidden = false;
    $("source").classList.toggle("alone", this.#redis && level.source !== "shared");
    say($("source"), source(level, this.#redis));
    $("outage").setAttribute("aria-checked", String(Boolean(level.redis_gone)));
  }

  /** The sandbox sends no levels, so the gauge follows the answers. */
  #lost() {
    if (!this.#isOwn()) return;
    this.#gauge.estimate();
    $("source").hidden = false;
    $("source").classList.add("alone");
    say($("source"), "no connection to the server");
  }

  #wait() { return Math.max(0, Math.ceil((this.#retryAt - clock()) / 1000)); }

  /** The ms until the picture changes: marks travel, the time line moves on, or units come back. */
  #pause() {
    if (this.#stage.travels) return 0;
    const wait = this.#wait();
    const moves = this.#gauge.part() < 1 || (wait > 0 && wait < Infinity) || performance.now() - (this.#last?.ended ?? -Infinity) < 1.1 * past;
    return moves ? 50 : Infinity;
  }

  #draw() {
    this.#gauge.draw();
    if (!this.#gauge.exact) this.#stage.level(this.#gauge.part());
    const wait = this.#wait();
    const known = this.#last || this.#gauge.exact; // before the first answer, another visit may have used the limit
    say($("countdown"), !known ? "–" : wait === Infinity ? "never" : wait > 0 ? `${digits(wait)} s` : "now");
    $("countdown").classList.toggle("waiting", wait > 0);
    this.#stage.draw(); // last, because it reads the layout
  }
}

const clock = () => performance.now();
