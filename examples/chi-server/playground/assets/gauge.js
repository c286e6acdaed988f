// The units left of a limit: the server's levels, or an estimate from the fields of
// the last answer.

import { $, digits, say } from "./dom.js";

export class Gauge {
  #quota = null; // left, limit, window and reset of the last answer
  #at = 0; // its time
  #algorithm = ""; // the first word of the limit
  #exact = false; // whether the server sends each level

  /** Reads an answer's fields. Buckets refill continuously, and windows at their reset. */
  answer(quota, algorithm) {
    if (this.#exact || quota.left === undefined || !quota.limit) return;
    this.#quota = quota;
    this.#at = performance.now();
    this.#algorithm = algorithm;
  }

  /** Reads a level from the server. */
  level({ remaining, burst }) {
    this.#exact = true;
    this.#quota = { left: remaining, limit: burst };
  }

  /** The server sends no more levels, so the answers count again. */
  estimate() { this.#exact = false; }

  clear() {
    this.#quota = null;
    this.#exact = false;
  }

  /** Whether the server sends each level. */
  get exact() { return this.#exact; }

  /** The part of the limit that is left; undefined before the first answer. */
  part() {
    return this.#quota ? this.#left() / this.#quota.limit : undefined;
  }

  #left() {
    const { left, limit, window, reset, retry } = this.#quota;
    if (this.#exact) return left;
    const seconds = (performance.now() - this.#at) / 1000;
    if (this.#algorithm.endsWith("bucket") && window) return Math.min(limit, left + (seconds * limit) / window);
    if (retry !== undefined && this.#algorithm.startsWith("sliding")) {
      // A denial says when one request fits. The whole limit is back at most two windows later.
      if (seconds >= 2 * window) return limit;
      return seconds >= retry ? Math.max(left, 1) : left;
    }
    return reset !== undefined && seconds >= reset ? limit : left;
  }

  draw() {
    const tank = $("tank");
    tank.classList.toggle("unknown", !this.#quota);
    if (!this.#quota) {
      say($("left"), "Units left: not known yet");
      $("water").style.transform = "scaleX(0)";
      $("units").style.backgroundSize = "100% 100%";
      tank.setAttribute("aria-valuetext", "not known");
      tank.setAttribute("aria-valuenow", 0);
      return;
    }
    const { limit } = this.#quota;
    const left = this.#left();
    const whole = Math.max(0, Math.floor(left + 1e-6));
    // What has come back since the answer is an estimate: other tabs may have used it.
    const about = !this.#exact && whole !== this.#quota.left ? "about " : "";
    say($("left"), `${about}${digits(whole)} of ${digits(limit)} left`);
    $("water").style.transform = `scaleX(${Math.max(0, Math.min(1, left / limit))})`;
    $("units").style.backgroundSize = limit <= 60 ? `${100 / limit}% 100%` : "100% 100%";
    const text = `${about}${whole} of ${limit} left`;
    if (tank.getAttribute("aria-valuetext") !== text) {
      tank.setAttribute("aria-valuemax", limit);
      tank.setAttribute("aria-valuenow", whole);
      tank.setAttribute("aria-valuetext", text);
    }
  }
}
