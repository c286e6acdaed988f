// What is left of a limit, now: as the server tells it, or between two answers
// as their fields promise it.

import { $, say } from "./dom.js";

export class Gauge {
  #quota = null; // left, limit, window and reset of the last answer
  #at = 0; // when that came
  #refills = true; // bit by bit; else all at once
  #exact = false; // the server tells each change

  /** An answer's fields. Bucket limits refill bit by bit, windows at their reset. */
  answer(quota, algorithm) {
    if (this.#exact || quota.left === undefined || !quota.limit) return;
    this.#quota = quota;
    this.#at = performance.now();
    this.#refills = algorithm.endsWith("bucket");
  }

  /** A level that the server told. */
  level({ remaining, burst }) {
    this.#exact = true;
    this.#quota = { left: remaining, limit: burst };
  }

  clear() {
    this.#quota = null;
    this.#exact = false;
  }

  /** How much is left now, as a part of the limit; undefined before the first answer. */
  part() {
    return this.#quota ? this.#left() / this.#quota.limit : undefined;
  }

  #left() {
    const { left, limit, window, reset } = this.#quota;
    if (this.#exact) return left;
    const seconds = (performance.now() - this.#at) / 1000;
    if (this.#refills && window) return Math.min(limit, left + (seconds * limit) / window);
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
    say($("left"), `${whole} of ${limit} left`);
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
