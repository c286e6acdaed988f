// The sandbox: a limit on the server that the visitor may change.

import { $, json, post, say } from "./dom.js";
import { ask, listen } from "./server.js";

export class Sandbox {
  #id = "";
  #making = null; // the promise of a new sandbox
  #events = null;
  #listener; // heard(level) for each level, lost() without a stream, replaced() for another limit
  #told = ""; // the limit last sent to the server
  #force = ""; // the limit in force
  #changed = false; // whether the form has changed since then
  #telling = false;

  constructor(listener) {
    this.#listener = listener;
    for (const id of ["algorithm", "requests", "window", "burst"]) {
      $(id).addEventListener("change", () => this.#change());
    }
    $("outage").addEventListener("click", () => this.#turn());
  }

  /** The limit in the form as text; empty if the form is not complete. */
  limit() {
    const fields = ["requests", "window", "burst"].map($);
    const bucket = $("algorithm").value.endsWith("bucket");
    $("burst").disabled = !bucket;
    $("burst").max = $("algorithm").value === "leaky-bucket" ? places : 100;
    if (Number($("burst").value) > Number($("burst").max)) $("burst").value = $("burst").max;
    if (fields.some((field) => !field.disabled && !field.reportValidity())) return "";
    const [requests, window, burst] = fields.map((field) => field.value);
    return `${$("algorithm").value} ${requests}/${window}s${bucket ? ` burst ${burst}` : ""}`;
  }

  get path() { return `/demo/sandboxes/${this.#id}`; }

  /** Makes a sandbox if there is none, and listens to it. */
  async open() {
    if (!this.#id) {
      this.#making ??= this.#create().finally(() => { this.#making = null; });
      if (!(await this.#making)) return false;
    }
    this.#listen();
    return true;
  }

  /** Stops listening. The server keeps the sandbox for a while. */
  close() {
    this.#events?.close();
    this.#events = null;
  }

  /** The server has dropped the sandbox. */
  forget() {
    this.close();
    this.#id = this.#told = "";
  }

  async #create() {
    const limit = this.limit();
    if (!limit) return false;
    try {
      const made = await post("/demo/sandboxes", { limit });
      this.#id = made.id;
      this.#inForce(limit, made);
      return true;
    } catch (error) {
      tell(`No sandbox: ${why(error)}.`, true);
      return false;
    }
  }

  #inForce(told, { limit }) {
    this.#told = told;
    if (limit !== this.#force) this.#listener.replaced(); // at once, because answers may overtake the level
    this.#force = limit;
    tell(`In force: ${limit}`);
  }

  /** Sends one change after the other, because two at once could arrive in any order. */
  async #change() {
    this.#changed = true;
    if (this.#telling) return;
    this.#telling = true;
    while (this.#changed) {
      this.#changed = false;
      await this.#tell();
    }
    this.#telling = false;
  }

  async #tell() {
    const limit = this.limit();
    if (!limit || !(await this.open())) return;
    if (limit === this.#told) {
      this.#inForce(limit, { limit: this.#force }); // removes the error of an older change
      return;
    }
    try {
      this.#inForce(limit, await post(`${this.path}/limit`, { limit }));
    } catch (error) {
      if (error.status !== 404) {
        tell(`Not changed: ${why(error)}. In force: ${this.#force}`, true);
        return;
      }
      this.forget();
      await this.open();
    }
  }

  #listen() {
    if (this.#events) return;
    this.#events = listen(this.path);
    this.#events.addEventListener("level", (event) => this.#listener.heard(JSON.parse(event.data)));
    this.#events.addEventListener("error", () => {
      this.#listener.lost();
      if (this.#events?.readyState !== EventSource.CLOSED) return; // the browser tries again
      this.#renew();
    });
  }

  /** The server no longer has the sandbox, because it has restarted or needed the room. Makes a new one. */
  async #renew() {
    this.forget();
    if (await this.open()) tell(`The server has dropped your sandbox, so this is a new one. In force: ${this.#force}`);
  }

  async #turn() {
    const gone = $("outage").getAttribute("aria-checked") !== "true";
    const response = await ask("/demo/outage", { method: "POST", body: JSON.stringify({ gone }) }).catch(() => null);
    if (response?.ok) $("outage").setAttribute("aria-checked", String(gone));
    else tell("The switch did not work. Try again in a moment.", true);
  }
}

const places = 5; // in a leaky bucket's queue: a browser cannot fill more

/** The text of an error. For a refused limit, the server says what it wants. */
const why = ({ status, message }) => (status === 400 ? `sandboxes ${message}` : message);

function tell(what, wrong = false) {
  say($("sandbox-says"), what);
  $("sandbox-says").classList.toggle("wrong", wrong);
}

/** The decider in words. */
export function source({ source, circuit_open: open, redis_gone: gone }, redis) {
  if (!redis) return "counted in memory";
  if (source === "shared") return gone ? "Redis is becoming unavailable" : "decided by Redis";
  return open ? "decided without Redis" : "Redis did not answer";
}

export const routes = () => json("/demo/routes");
