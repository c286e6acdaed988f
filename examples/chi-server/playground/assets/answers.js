// The answers to requests: one of them is open, field by field.

import { $, element, say } from "./dom.js";
import { explain, statusLine } from "./fields.js";

const most = 1000; // answers

export class Answers {
  #stage;
  #all = []; // {answer, mark}
  #follows = true; // whether the newest answer opens by itself
  #changed;

  constructor(stage, changed) {
    this.#stage = stage;
    this.#changed = changed;
    const canvas = $("timeline");
    const at = ({ offsetX, offsetY }) => stage.find(offsetX, offsetY);
    canvas.addEventListener("pointermove", (event) => { canvas.style.cursor = at(event) ? "pointer" : ""; });
    canvas.addEventListener("click", (event) => {
      const index = this.#all.findIndex(({ mark }) => mark === at(event));
      if (index >= 0) this.#choose(index);
      if (index >= 0) $("status-line").scrollIntoView({ block: "nearest" });
    });
    $("pick").addEventListener("input", () => this.#choose(Number($("pick").value) - 1));
  }

  clear() {
    this.#all = [];
    this.#follows = true;
    this.#stage.chosen = null;
    $("fields").hidden = $("body").hidden = true;
    say($("status-line"), "No answer yet");
    this.#count(0);
  }

  /** A new burst opens its own answers. */
  follow() { this.#follows = true; }

  /** Adds an answer. An answer that is older than the one before it does not open. */
  add(answer, mark, newest) {
    this.#all.push({ answer, mark });
    if (this.#all.length > most) this.#all.shift();
    if (this.#follows && newest) this.#open(this.#all.length - 1);
    else this.#count(Number($("pick").value) - 1);
  }

  #choose(index) {
    this.#follows = false;
    this.#open(index);
  }

  #count(index) {
    const n = this.#all.length;
    $("pick").disabled = n === 0;
    $("pick").max = Math.max(1, n);
    $("pick").value = index + 1;
    say($("pick-says"), n === 0 ? "Click a mark, or choose a response here" : `Response ${index + 1} of ${n}. Click a mark, or choose here`);
  }

  #open(index) {
    const { answer, mark } = this.#all[index];
    this.#stage.chosen = mark;
    this.#count(index);
    $("pick").setAttribute("aria-valuetext", `response ${index + 1}: ${answer.status || "none"}`);
    say($("status-line"), answer.status ? statusLine(answer) : "No answer: the server is unavailable.");
    const rows = explain(answer.headers, answer.status);
    $("fields").hidden = rows.length === 0;
    $("fields").tBodies[0].replaceChildren(...rows.map(({ name, value, says }) =>
      element("tr", {}, element("th", { scope: "row" }, name), element("td", {}, value), element("td", {}, says))));
    $("body").hidden = answer.body === "";
    say($("body"), answer.body.trim().slice(0, 600));
    this.#changed();
  }
}
