// The live part: what is sent, and what becomes of it.

import { burst } from "./burst.js";
import { $, element, plural, say } from "./dom.js";
import { explain, quota, statusLine } from "./fields.js";
import { Gauge } from "./gauge.js";
import { routes, Sandbox, source } from "./sandbox.js";
import { everyFrame, past, Timeline } from "./timeline.js";

const own = "sandbox"; // the target's value that is no route

export async function live() {
  const { routes: list, redis } = await routes();
  new Live(list, redis);
}

class Live {
  #routes;
  #redis;
  #gauge = new Gauge();
  #timeline = new Timeline($("timeline"));
  #sandbox = new Sandbox((level) => this.#heard(level));
  #counts = { allowed: 0, denied: 0, other: 0 };
  #retryAt = -Infinity;
  #last = null; // the answer that is shown
  #changed; // is to be drawn
  #running = null; // the AbortController of what is being sent

  constructor(list, redis) {
    this.#routes = list;
    this.#redis = redis;
    this.#listTargets();
    $("outage").hidden = !redis;
    $("target").addEventListener("change", () => this.#choose());
    $("one").addEventListener("click", () => this.#send(1));
    $("stop").addEventListener("click", () => this.#running?.abort());
    $("send").addEventListener("submit", (event) => {
      event.preventDefault();
      this.#send(Number($("count").value));
    });
    this.#changed = everyFrame(() => this.#draw(), () => this.#moves());
    this.#choose();
  }

  #listTargets() {
    const api = element("optgroup", { label: "The API" });
    this.#routes.forEach((route, i) => api.append(element("option", { value: i }, `${route.title}: ${route.method} ${route.path}`)));
    const yours = element("optgroup", { label: "Your own" }, element("option", { value: own }, "Sandbox: a limit that you change"));
    $("target").append(api, yours);
  }

  #isOwn() { return $("target").value === own; }

  /** What is to be sent, as the form says it. */
  #request() {
    if (this.#isOwn()) {
      return { method: "POST", path: `${this.#sandbox.path}/requests?cost=${$("cost").value}`, algorithm: $("algorithm").value };
    }
    const route = this.#routes[Number($("target").value)];
    return { ...route, key: $("key").value, algorithm: route.limit.split(" ")[0] };
  }

  async #choose() {
    this.#running?.abort();
    this.#clear();
    const mine = this.#isOwn();
    $("sandbox").hidden = $("cost-field").hidden = !mine;
    $("sandbox").disabled = $("cost").disabled = !mine; // what nobody sees cannot be invalid
    $("key-field").hidden = mine;
    if (!mine) {
      this.#sandbox.close();
      const route = this.#routes[Number($("target").value)];
      $("target-says").replaceChildren(element("code", {}, route.limit), element("br"), route.note);
      return;
    }
    say($("target-says"), "Requests to a middleware of your own on this server, of which you set the limit.");
    await this.#sandbox.open();
    if (!this.#isOwn()) this.#sandbox.close(); // meanwhile it was another choice
  }

  #clear() {
    this.#counts = { allowed: 0, denied: 0, other: 0 };
    this.#retryAt = -Infinity;
    this.#last = null;
    this.#gauge.clear();
    this.#timeline.clear();
    $("source").hidden = true;
    say($("summary"), "");
    this.#count();
    this.#changed();
  }

  async #send(count) {
    if (!$("send").reportValidity() || this.#running) return;
    if (this.#isOwn() && !(await this.#sandbox.open())) return;
    const stop = new AbortController();
    const before = { ...this.#counts };
    this.#busy(stop);
    const request = this.#request();
    const took = await burst({
      count, request, signal: stop.signal,
      perSecond: count > 1 ? Number($("pace").value) : 0,
      answered: (answer) => this.#answered(answer, request),
    });
    if (this.#running === stop) this.#busy(null);
    const now = this.#counts;
    const [allowed, denied, other] = ["allowed", "denied", "other"].map((name) => now[name] - before[name]);
    if (allowed + denied + other <= 0) return;
    const rest = other ? `, ${other} answered otherwise` : "";
    const wait = this.#wait();
    const again = wait > 0 ? ` Try again in ${plural(wait, "second")}.` : "";
    say($("summary"), `${plural(allowed + denied + other, "request")} in ${(took / 1000).toFixed(2)} s: ${allowed} allowed, ${denied} denied${rest}.${again}`);
  }

  #busy(stop) {
    this.#running = stop;
    $("burst-send").disabled = $("one").disabled = stop !== null;
    $("stop").disabled = stop === null;
  }

  #answered(answer, request) {
    const what = answer.status === 429 ? "denied" : answer.status >= 200 && answer.status < 300 ? "allowed" : "other";
    this.#counts[what] += 1;
    this.#count();
    if (what !== "other") this.#timeline.request(what === "allowed");
    if (answer.status === 404 && this.#isOwn()) this.#sandbox.forget();

    const fields = quota(answer.headers);
    const rank = fields.left + (what === "denied" ? 0 : 0.5);
    if (this.#last && answer.began < this.#last.ended && rank > this.#last.rank) return; // decided before what is shown
    this.#last = { ended: answer.ended, rank };
    this.#gauge.answer(fields, request.algorithm);
    this.#timeline.level(this.#gauge.part());
    this.#retryAt = fields.retry === undefined ? -Infinity : performance.now() + fields.retry * 1000;
    this.#timeline.retryAt(this.#retryAt);
    this.#show(answer);
    this.#changed();
  }

  #count() {
    for (const [name, n] of Object.entries(this.#counts)) say($(name), String(n));
  }

  #show(answer) {
    say($("status-line"), answer.status ? statusLine(answer) : "No answer: the server is not there.");
    const rows = explain(answer.headers, answer.status);
    $("fields").hidden = rows.length === 0;
    $("fields").tBodies[0].replaceChildren(...rows.map(({ name, value, says }) =>
      element("tr", {}, element("th", { scope: "row" }, name), element("td", {}, value), element("td", {}, says))));
    $("body").hidden = answer.body === "";
    say($("body"), answer.body.trim().slice(0, 600));
  }

  #heard(level) {
    if (!this.#isOwn()) return;
    this.#gauge.level(level);
    this.#timeline.level(this.#gauge.part());
    this.#changed();
    $("source").hidden = false;
    $("source").classList.toggle("alone", this.#redis && level.source !== "shared");
    say($("source"), source(level, this.#redis));
    $("outage").setAttribute("aria-checked", String(level.redis_gone));
  }

  #wait() { return Math.max(0, Math.ceil((this.#retryAt - performance.now()) / 1000)); }

  /** Whether the time line shows something that passes, or something comes back. */
  #moves() {
    return this.#gauge.part() < 1 || this.#wait() > 0 || performance.now() - (this.#last?.ended ?? -Infinity) < 1.1 * past;
  }

  #draw() {
    this.#gauge.draw();
    if (!this.#isOwn()) this.#timeline.level(this.#gauge.part());
    this.#timeline.draw();
    const wait = this.#wait();
    say($("countdown"), wait > 0 ? `${wait} s` : "now");
    $("countdown").classList.toggle("waiting", wait > 0);
  }
}
