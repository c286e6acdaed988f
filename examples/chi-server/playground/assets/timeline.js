// The time line: units left, allowed requests above the line, denied requests below
// it. Times are those of performance.now.

export const past = 30_000; // ms on the picture
const future = 8_000; // room for the earliest retry
const bin = 250;
const quiet = matchMedia("(prefers-reduced-motion: reduce)");

export class Timeline {
  #canvas;
  #bins = new Map(); // index: {allowed, refused, denied, other}
  #levels = []; // {at, part}
  #retryAt = -Infinity;
  #colours = {};

  constructor(canvas) {
    this.#canvas = canvas;
    new ResizeObserver(() => this.draw()).observe(canvas);
    this.#readColours();
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { this.#readColours(); this.draw(); });
  }

  #readColours() {
    const style = getComputedStyle(document.documentElement);
    for (const name of ["water", "water-soft", "denied", "line", "edge", "muted", "wait", "surface"]) {
      this.#colours[name] = style.getPropertyValue(`--${name}`).trim();
    }
    this.#colours.font = `12px ${style.getPropertyValue("--sans")}`;
  }

  /** Adds a request that was allowed, refused by the application after that, denied, or other. */
  request(what) {
    const index = Math.floor(performance.now() / bin);
    const count = this.#bins.get(index) ?? { allowed: 0, refused: 0, denied: 0, other: 0 };
    count[what] += 1;
    this.#bins.set(index, count);
  }

  /** The requests on the picture, for tests. */
  get counts() {
    const sum = { allowed: 0, refused: 0, denied: 0, other: 0 };
    for (const count of this.#bins.values()) for (const what of Object.keys(sum)) sum[what] += count[what];
    return sum;
  }

  retryAt(at) { this.#retryAt = at; }

  level(part) {
    if (part === undefined) return;
    const at = performance.now();
    if (at - this.#levels.at(-2)?.at < 60) this.#levels.pop(); // more levels are not visible
    this.#levels.push({ at, part });
  }

  clear() {
    this.#bins.clear();
    this.#levels = [];
    this.#retryAt = -Infinity;
  }

  draw() {
    const { clientWidth: width, clientHeight: height } = this.#canvas;
    if (!width) return;
    const scale = devicePixelRatio || 1;
    if (this.#canvas.width !== Math.round(width * scale) || this.#canvas.height !== Math.round(height * scale)) {
      this.#canvas.width = Math.round(width * scale);
      this.#canvas.height = Math.round(height * scale);
    }
    const pen = this.#canvas.getContext("2d");
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    pen.clearRect(0, 0, width, height);
    const now = quiet.matches ? Math.ceil(performance.now() / 1000) * 1000 : performance.now();
    this.#forget(now);
    const x = (at) => ((at - now + past) / (past + future)) * width;
    const split = Math.round(height * 0.36);
    this.#drawAxis(pen, x, now, width, height, split);
    if (this.#bins.size === 0 && this.#levels.length === 0) this.#drawNothing(pen, width, split);
    this.#drawLevels(pen, x, now, split);
    this.#drawRequests(pen, x, split, height - 24);
    this.#drawRetry(pen, x, now, split, height - 24);
  }

  #forget(now) {
    for (const index of this.#bins.keys()) if ((index + 1) * bin < now - past) this.#bins.delete(index);
    while (this.#levels.length > 1 && this.#levels[1].at < now - past) this.#levels.shift();
  }

  #drawNothing(pen, width, split) {
    pen.font = this.#colours.font;
    pen.textAlign = "center";
    const text = "Each request you send appears here.";
    const wide = pen.measureText(text).width + 16;
    pen.fillStyle = this.#colours.surface; // hides the line behind it
    pen.fillRect((width - wide) / 2, split / 2 - 10, wide, 20);
    pen.fillStyle = this.#colours.muted;
    pen.fillText(text, width / 2, split / 2 + 4);
  }

  #drawAxis(pen, x, now, width, height, split) {
    const narrow = width < 480;
    pen.font = this.#colours.font;
    pen.textAlign = "center";
    for (let s = -30; s <= 5; s += 5) {
      const at = Math.round(x(now + s * 1000)) + 0.5;
      line(pen, s === 0 ? this.#colours.edge : this.#colours.line, at, 0, at, height - 22);
      if (s === -30 || (narrow && s % 10 !== 0)) continue;
      pen.fillStyle = this.#colours.muted;
      pen.fillText(s === 0 ? "now" : `${s > 0 ? "+" : "−"}${Math.abs(s)} s`, at, height - 7);
    }
    line(pen, this.#colours.edge, 0, split + 0.5, width, split + 0.5);
  }

  #drawLevels(pen, x, now, split) {
    if (this.#levels.length === 0) return;
    const top = 10;
    const y = (part) => split - part * (split - top);
    pen.beginPath();
    pen.moveTo(Math.max(0, x(this.#levels[0].at)), split);
    let last = this.#levels[0].part;
    for (const { at, part } of this.#levels) {
      pen.lineTo(Math.max(0, x(at)), y(last));
      pen.lineTo(Math.max(0, x(at)), y(part));
      last = part;
    }
    pen.lineTo(x(now), y(last));
    pen.lineTo(x(now), split);
    pen.closePath();
    pen.fillStyle = this.#colours["water-soft"];
    pen.fill();
    pen.strokeStyle = this.#colours.water;
    pen.lineWidth = 1.5;
    pen.stroke();
  }

  #drawRequests(pen, x, top, bottom) {
    const middle = Math.round((top + bottom) / 2);
    const room = (bottom - top) / 2 - 10;
    let most = 1;
    for (const { allowed, refused, denied, other } of this.#bins.values()) most = Math.max(most, allowed + refused, denied + other);
    const step = Math.min(7, room / most);
    const gap = step >= 4 ? 1.5 : 0; // a gap between units
    line(pen, this.#colours.edge, 0, middle + 0.5, pen.canvas.clientWidth, middle + 0.5);
    for (const [index, { allowed, refused, denied, other }] of this.#bins) {
      const left = x(index * bin) + 0.5;
      const wide = Math.max(2.5, x((index + 1) * bin) - x(index * bin) - 1);
      const high = Math.max(1, step - gap);
      const up = (i) => middle - 1 - (i + 1) * step;
      const down = (i) => middle + 2 + i * step;
      pen.fillStyle = this.#colours.water;
      for (let i = 0; i < allowed; i += 1) pen.fillRect(left, up(i), wide, high);
      pen.fillStyle = this.#colours.denied;
      for (let i = 0; i < denied; i += 1) pen.fillRect(left, down(i), wide, high);
      // Hollow: the application's own refusals, and answers without a decision.
      pen.lineWidth = 1;
      pen.strokeStyle = this.#colours.water;
      for (let i = allowed; i < allowed + refused; i += 1) pen.strokeRect(left + 0.5, up(i) + 0.5, wide - 1, high - 1);
      pen.strokeStyle = this.#colours.muted;
      for (let i = denied; i < denied + other; i += 1) pen.strokeRect(left + 0.5, down(i) + 0.5, wide - 1, high - 1);
    }
  }

  #drawRetry(pen, x, now, top, bottom) {
    if (this.#retryAt <= now - past) return;
    const at = Math.min(Math.round(x(this.#retryAt)), pen.canvas.clientWidth - 2);
    pen.setLineDash([4, 4]);
    line(pen, this.#colours.wait, at, top + 4, at, bottom, 2);
    pen.setLineDash([]);
  }
}

function line(pen, colour, x1, y1, x2, y2, width = 1) {
  pen.strokeStyle = colour;
  pen.lineWidth = width;
  pen.beginPath();
  pen.moveTo(x1, y1);
  pen.lineTo(x2, y2);
  pen.stroke();
}

/**
 * Calls draw when told that something has changed, and while something moves for
 * each frame; for who wants it still, twice a second.
 */
export function everyFrame(draw, moves) {
  let last = 0;
  let changed = true;
  let moving = false;
  const frame = (now) => {
    const goesOn = moves();
    const rests = moving && !goesOn; // so that the rest is visible
    if (changed || rests || (goesOn && (!quiet.matches || now - last >= 500))) {
      last = now;
      moving = goesOn;
      changed = false;
      draw();
    }
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
  return () => { changed = true; };
}
