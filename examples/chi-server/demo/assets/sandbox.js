// A limit of the visitor's own, on the server.

import { $, ask, json, post, say } from "./dom.js";

export class Sandbox {
  #id = "";
  #making = null; // what becomes of a sandbox that is being made
  #events = null;
  #listener; // heard is told each level, lost that none come, and replaced that there is another limit
  #told = ""; // the limit that the server was told last
  #force = ""; // what it made of that
  #changed = false; // the form, since it was told
  #telling = false;

  constructor(listener) {
    this.#listener = listener;
    for (const id of ["algorithm", "requests", "window", "burst"]) {
      $(id).addEventListener("change", () => this.#change());
    }
    $("outage").addEventListener("click", () => this.#turn());
  }

  /** What the form says, as limits are written; empty if it is not complete. */
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

  /** Makes a sandbox unless there is one, and listens to it. */
  async open() {
    if (!this.#id) {
      this.#making ??= this.#create().finally(() => { this.#making = null; });
      if (!(await this.#making)) return false;
    }
    this.#listen();
    return true;
  }

  /** Does not listen any more; the sandbox stays for a while. */
  close() {
    this.#events?.close();
    this.#events = null;
  }

  /** The server knows it no more. */
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
    if (limit !== this.#force) this.#listener.replaced(); // now, and not with a level, which answers may overtake
    this.#force = limit;
    tell(`In force: ${limit}`);
  }

  /** Tells the server one change after the other: two at once might come in any order. */
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
      this.#inForce(limit, { limit: this.#force }); // what was refused meanwhile is no more to be seen
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
    this.#events = new EventSource(`${this.path}/events`);
    this.#events.addEventListener("level", (event) => this.#listener.heard(JSON.parse(event.data)));
    this.#events.addEventListener("error", () => {
      this.#listener.lost();
      if (this.#events?.readyState !== EventSource.CLOSED) return; // the browser tries again
      this.forget();
      tell("The server tells no more what is left. Change the limit, or send, to begin anew.", true);
    });
  }

  async #turn() {
    const gone = $("outage").getAttribute("aria-checked") !== "true";
    const response = await ask("/demo/outage", { method: "POST", body: JSON.stringify({ gone }) }).catch(() => null);
    if (response?.ok) $("outage").setAttribute("aria-checked", String(gone));
    else tell("The switch did not move: try again in a moment.", true);
  }
}

const places = 5; // of a leaky bucket's queue: a browser could not fill more of them

/** What an error says; of a limit that is refused, the server says what is wanted. */
const why = ({ status, message }) => (status === 400 ? `sandboxes ${message}` : message);

function tell(what, wrong = false) {
  say($("sandbox-says"), what);
  $("sandbox-says").classList.toggle("wrong", wrong);
}

/** Who decides, in words. */
export function source({ source, circuit_open: open, redis_gone: gone }, redis) {
  if (!redis) return "counted in memory";
  if (source === "shared") return gone ? "Redis is going" : "decided by Redis";
  return open ? "decided without Redis" : "Redis did not answer";
}

export const routes = () => json("/demo/routes");
