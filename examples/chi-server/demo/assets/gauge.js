// What is left of a limit, now: as the server tells it, or between two answers
// as their fields promise it.

import { $, digits, say } from "./dom.js";

export class Gauge {
  #quota = null; // left, limit, window and reset of the last answer
  #at = 0; // when that came
  #algorithm = ""; // as the names of limits begin
  #exact = false; // the server tells each change

  /** An answer's fields. Bucket limits refill bit by bit, windows at their reset. */
  answer(quota, algorithm) {
    if (this.#exact || quota.left === undefined || !quota.limit) return;
    this.#quota = quota;
    this.#at = performance.now();
    this.#algorithm = algorithm;
  }

  /** A level that the server told. */
  level({ remaining, burst }) {
    this.#exact = true;
    this.#quota = { left: remaining, limit: burst };
  }

  /** The server tells no more: answers count again. */
  estimate() { this.#exact = false; }

  clear() {
    this.#quota = null;
    this.#exact = false;
  }

  /** How much is left now, as a part of the limit; undefined before the first answer. */
  part() {
    return this.#quota ? this.#left() / this.#quota.limit : undefined;
  }

  #left() {
    const { left, limit, window, reset, retry } = this.#quota;
    if (this.#exact) return left;
    const seconds = (performance.now() - this.#at) / 1000;
    if (this.#algorithm.endsWith("bucket") && window) return Math.min(limit, left + (seconds * limit) / window);
    if (retry !== undefined && this.#algorithm.startsWith("sliding")) {
      // A denial says when one request fits, and not when all is back: that is two windows later at most.
      if (seconds >= 2 * window) return limit;
      return seconds >= retry ? Math.max(left, 1) : left;
    }
    return reset !== undefined && seconds >= reset ? limit : left;
  }

  draw() {
    if (!this.#quota) {
      say($("left"), "Full, as far as this page knows");
      $("water").style.transform = "scaleX(1)";
      return;
    }
    const { limit } = this.#quota;
    const left = this.#left();
    const whole = Math.max(0, Math.floor(left + 1e-6));
    say($("left"), `${digits(whole)} of ${digits(limit)} left`);
    $("water").style.transform = `scaleX(${Math.max(0, Math.min(1, left / limit))})`;
    $("units").style.backgroundSize = limit <= 60 ? `${100 / limit}% 100%` : "100% 100%";
    const tank = $("tank");
    if (tank.getAttribute("aria-valuenow") !== String(whole)) {
      tank.setAttribute("aria-valuemax", limit);
      tank.setAttribute("aria-valuenow", whole);
      tank.setAttribute("aria-valuetext", `${whole} of ${limit} left`);
    }
  }
}
