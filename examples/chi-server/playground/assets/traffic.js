// Traffic that the visitor draws: the numbers of requests in each two seconds of two minutes.

import { shape } from "./dom.js";

const bars = 60;
const wide = 2000; // ms
const most = 20; // requests in a bar
const limit = 600; // requests in all; the server takes no more

/** The instants of the requests in ms, evenly within each bar. */
export function arrivals(numbers) {
  return numbers.flatMap((n, i) => Array.from({ length: n }, (_, j) => Math.floor((i + j / n) * wide)));
}

/** A preset as bars, which add up to n requests in each span of the preset. */
function preset(kind, n) {
  const rate = { steady: n / 30, overload: (2 * n) / 30, turn: n / 5 }[kind];
  const begins = kind === "turn" ? 25 : 0;
  const ends = kind === "turn" ? 35 : bars;
  return Array.from({ length: bars }, (_, i) => {
    if (i < begins || i >= ends) return 0;
    return Math.ceil((i - begins + 1) * rate - 1e-9) - Math.ceil((i - begins) * rate - 1e-9);
  });
}

export class Drawing {
  bars = new Array(bars).fill(0);
  #svg;
  #drawn; // called after each change by the visitor
  #cursor = 0;

  constructor(svg, drawn) {
    this.#svg = svg;
    this.#drawn = drawn;
    svg.addEventListener("pointerdown", (event) => {
      svg.setPointerCapture(event.pointerId);
      this.#press(event);
    });
    svg.addEventListener("pointermove", (event) => { if (event.buttons) this.#press(event); });
    svg.addEventListener("keydown", (event) => this.#key(event));
  }

  set(kind, n) {
    this.bars = preset(kind, n);
    this.#draw();
  }

  clear() {
    this.bars.fill(0);
    this.#draw();
  }

  #top() { return Math.max(8, ...this.bars); }

  #press({ offsetX, offsetY }) {
    const { clientWidth: width, clientHeight: height } = this.#svg;
    this.#cursor = Math.max(0, Math.min(bars - 1, Math.floor((offsetX / width) * bars)));
    this.#put(Math.round((1 - offsetY / height) * this.#top()));
  }

  #key(event) {
    const moves = { ArrowLeft: -1, ArrowRight: 1 };
    const changes = { ArrowUp: 1, ArrowDown: -1 };
    if (event.key in moves) {
      this.#cursor = (this.#cursor + moves[event.key] + bars) % bars;
      this.#draw();
    } else if (event.key in changes) this.#put(this.bars[this.#cursor] + changes[event.key]);
    else return;
    event.preventDefault();
  }

  #put(n) {
    const others = this.bars.reduce((sum, bar, i) => (i === this.#cursor ? sum : sum + bar), 0);
    n = Math.max(0, Math.min(most, limit - others, n));
    if (n === this.bars[this.#cursor]) return;
    this.bars[this.#cursor] = n;
    this.#draw();
    this.#drawn();
  }

  #draw() {
    const each = 1000 / bars;
    const top = this.#top();
    const path = this.bars.map((n, i) => (n ? `M${i * each + 1.5} 90V${90 - (n / top) * 84}h${each - 3}V90Z` : "")).join("");
    this.#svg.replaceChildren(
      shape("path", { class: "turn", d: "M500 0V90" }),
      shape("rect", { class: "cursor", x: this.#cursor * each, y: 0, width: each, height: 90 }),
      shape("path", { class: "bars", d: path }));
    const second = (this.#cursor * wide) / 1000;
    this.#svg.setAttribute("aria-valuenow", this.bars[this.#cursor]);
    this.#svg.setAttribute("aria-valuetext", `second ${second}: ${this.bars[this.#cursor]} requests`);
  }
}
