// The stage: requests as marks that move to the limit, and through it or back. Times are milliseconds of the stage's clock.

import { Marks } from "./marks.js";

const journey = 450; // ms of a mark, from the client to its place
const axis = 22; // px below the tracks
const quiet = matchMedia("(prefers-reduced-motion: reduce)");

/** A picture of one or several limits, each with its served requests above it and its denied ones below. */
export class Stage {
  #canvas;
  #tracks = [];
  #clock; // the time of the stage, in ms
  #view; // {from, to} of the picture
  #axis; // a time in words
  #colours = {};
  #chosen = null;
  #notes = []; // {at, number}

  constructor(canvas, { clock, view, axis: words }) {
    this.#canvas = canvas;
    this.#clock = clock;
    this.#view = view;
    this.#axis = words;
    new ResizeObserver(() => this.draw()).observe(canvas);
    this.#readColours();
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { this.#readColours(); this.draw(); });
  }

  #readColours() {
    const style = getComputedStyle(document.documentElement);
    for (const name of ["water", "water-soft", "denied", "denied-soft", "line", "edge", "muted", "wait", "surface", "ink", "on-water"]) {
      this.#colours[name] = style.getPropertyValue(`--${name}`).trim();
    }
    this.#colours.font = style.getPropertyValue("--sans");
  }

  /** Replaces everything by tracks: {name, levels}. A level is {at, part, alone}. Notes are {at, number} on the time axis. */
  begin(tracks, notes = []) {
    this.#tracks = tracks.map((track) => ({ levels: [], ...track, marks: new Marks() }));
    this.#notes = notes;
    this.#chosen = null;
  }

  /** Adds a request: {at, what: allowed, refused, denied or other, retryAt}. Its journey begins when it is first drawn. */
  add(mark, track = 0) {
    this.#tracks[track].marks.add(mark);
    return mark;
  }

  /** The part of the limit that is left from now on. */
  level(part) {
    if (part === undefined) return;
    const at = this.#clock();
    const { levels } = this.#tracks[0];
    if (at - levels.at(-2)?.at < 50) levels.pop(); // more levels are not visible
    levels.push({ at, part });
    while (levels[1]?.at < this.#view().from) levels.shift();
  }

  set chosen(mark) { this.#chosen = mark; }

  get marks() { return this.#tracks.flatMap((track) => track.marks.all); }

  /** The mark at a place of the canvas, or none. */
  find(x, y) {
    let found = null;
    let nearest = 20;
    for (const mark of this.marks) {
      const away = mark.x === undefined ? Infinity : Math.hypot(mark.x - x, mark.y - y);
      if (away < nearest) [found, nearest] = [mark, away];
    }
    return found;
  }

  /** Whether a mark is on its way. */
  get travels() { return !quiet.matches && this.marks.some((mark) => performance.now() - (mark.born ?? Infinity) < journey); }

  draw() {
    const { clientWidth: width, clientHeight: height } = this.#canvas;
    if (!width) return;
    const scale = devicePixelRatio || 1;
    const [wide, high] = [Math.round(width * scale), Math.round(height * scale)];
    if (this.#canvas.width !== wide || this.#canvas.height !== high) Object.assign(this.#canvas, { width: wide, height: high });
    const pen = this.#canvas.getContext("2d");
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    pen.clearRect(0, 0, width, height);
    const { from, to } = this.#view();
    const x = (at) => ((at - from) / (to - from)) * width;
    const each = (height - axis) / this.#tracks.length;
    this.#drawAxis(pen, x, from, to, width, height);
    const gate = Math.max(18, Math.round(each * 0.12));
    const lane = (each - gate) / 2 - 8;
    const room = { x, perPixel: Math.round((1000 * (to - from)) / width) / 1000, up: lane, down: lane };
    const size = Math.min(...this.#tracks.map(({ marks }) => marks.fit(room)));
    this.#tracks.forEach((track, i) => {
      track.marks.place(size, room);
      this.#drawTrack(pen, x, track, Math.round(i * each), each, gate, width);
    });
    this.#drawNotes(pen, x, height);
  }

  #drawAxis(pen, x, from, to, width, height) {
    pen.font = `12px ${this.#colours.font}`;
    pen.textAlign = "center";
    for (const { at, text, strong } of this.#axis(from, to, width)) {
      const place = Math.round(x(at)) + 0.5;
      line(pen, strong ? this.#colours.edge : this.#colours.line, place, 0, place, height - axis, strong ? 1.5 : 1);
      if (!text) continue;
      const half = pen.measureText(text).width / 2;
      pen.fillStyle = this.#colours.muted;
      if (place - half > 0 && place + half < width) pen.fillText(text, place, height - 6);
    }
  }

  #drawTrack(pen, x, track, top, high, gate, width) {
    const upper = Math.round(top + (high - gate) / 2);
    const lower = upper + gate;
    this.#drawLevels(pen, x, track, upper, lower, width);
    pen.font = `600 12px ${this.#colours.font}`;
    pen.textAlign = "left";
    pen.fillStyle = this.#colours.muted;
    pen.fillText("Served", 8, top + 16);
    pen.fillText("Denied", 8, top + high - 8);
    pen.fillStyle = this.#colours.ink;
    pen.fillText(track.name, 8, (upper + lower) / 2 + 4);
    if (top > 0) line(pen, this.#colours.edge, 0, top + 0.5, width, top + 0.5);
    const now = this.#clock();
    for (const mark of track.marks.all) if (mark.at <= now) this.#drawMark(pen, mark, upper, lower, top + high);
  }

  /** The limit is a band. The water in it are the units that are left. */
  #drawLevels(pen, x, { levels }, top, bottom, width) {
    const end = Math.min(width, x(this.#clock()));
    levels.forEach(({ at, part, alone }, i) => {
      const left = Math.max(0, x(at));
      const right = Math.min(end, i + 1 < levels.length ? x(levels[i + 1].at) : end);
      const high = Math.max(0, Math.min(1, part)) * (bottom - top);
      if (right <= left) return;
      pen.fillStyle = this.#colours["denied-soft"];
      if (alone) pen.fillRect(left, top, right - left + 0.5, bottom - top);
      pen.fillStyle = this.#colours["water-soft"];
      pen.fillRect(left, bottom - high, right - left + 0.5, high);
    });
    line(pen, this.#colours.edge, 0, top + 0.5, width, top + 0.5, 1.5);
    line(pen, this.#colours.edge, 0, bottom + 0.5, width, bottom + 0.5, 1.5);
  }

  #drawMark(pen, mark, upper, lower, bottom) {
    mark.born ??= performance.now();
    const way = quiet.matches ? 1 : Math.min(1, (performance.now() - mark.born) / journey);
    const through = mark.what === "allowed" || mark.what === "refused";
    const r = Math.max(1, mark.size / 2 - 1);
    mark.y = through ? upper - 4 - mark.away : lower + 4 + mark.away;
    const gate = lower + r;
    let y = mark.y;
    if (way < 0.5) y = bottom - (bottom - gate) * ease(way * 2);
    else if (way < 1) y = gate + (mark.y - gate) * ease(way * 2 - 1);
    if (mark.x < -10) return;
    const colour = this.#colours[through ? "water" : mark.what === "denied" && way >= 0.5 ? "denied" : "muted"];
    pen.beginPath();
    pen.arc(mark.x, y, r, 0, 2 * Math.PI);
    pen.lineWidth = 1.5;
    pen.strokeStyle = pen.fillStyle = colour;
    if (mark.what === "allowed") pen.fill();
    else if (mark.what !== "denied") pen.stroke(); // hollow: refused by the application, or without a decision
    else this.#drawRing(pen, mark, y, r);
    if (mark === this.#chosen) ring(pen, mark.x, y, r + 3.5, 1, this.#colours.ink, 2);
  }

  /** A denied request has a ring that closes as its Retry-After passes. */
  #drawRing(pen, mark, y, r) {
    const waits = mark.retryAt > mark.at;
    const passed = waits ? Math.min(1, Math.max(0, (this.#clock() - mark.at) / (mark.retryAt - mark.at))) : 0;
    pen.beginPath();
    pen.arc(mark.x, y, r > 4 ? r - 3 : r, 0, 2 * Math.PI);
    pen.fill();
    if (r > 4 && waits) {
      ring(pen, mark.x, y, r - 0.75, 1, this.#colours.line, 1.5);
      ring(pen, mark.x, y, r - 0.75, passed, this.#colours[passed === 1 ? "water" : "wait"], 1.75);
    }
  }

  #drawNotes(pen, x, height) {
    pen.font = `700 12px ${this.#colours.font}`;
    pen.textAlign = "center";
    const now = this.#clock();
    let free = 10; // px from the left, so that two numbers do not cover each other
    for (const { at, number } of this.#notes) {
      if (at > now) continue;
      const place = Math.max(free, Math.min(this.#canvas.clientWidth - 10, x(at)));
      free = place + 20;
      pen.setLineDash([3, 4]);
      line(pen, this.#colours.wait, place, 20, place, height - axis, 1.5);
      pen.setLineDash([]);
      pen.fillStyle = this.#colours.wait;
      pen.beginPath();
      pen.arc(place, 11, 9, 0, 2 * Math.PI);
      pen.fill();
      pen.fillStyle = this.#colours.surface;
      pen.fillText(String(number), place, 15);
    }
  }
}

/** The axis of a picture that moves: now, and the seconds around it. */
export const liveAxis = (past, future) => (from, _to, width) => {
  const now = from + past;
  const step = width < 480 ? 10 : 5;
  return Array.from({ length: Math.floor((past + future) / 5000) + 1 }, (_, i) => i * 5 - past / 1000).map((s) => ({
    at: now + s * 1000, strong: s === 0, text: s === 0 ? "now" : s % step ? "" : `${s > 0 ? "+" : "−"}${Math.abs(s)} s`,
  }));
};

const ease = (t) => t * t * (3 - 2 * t);

function ring(pen, x, y, r, part, colour, width) {
  pen.beginPath();
  pen.arc(x, y, r, -Math.PI / 2, -Math.PI / 2 + part * 2 * Math.PI);
  pen.strokeStyle = colour;
  pen.lineWidth = width;
  pen.stroke();
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
 * Calls draw when told that something has changed, and again after pause() ms: 0 for each frame, Infinity for none, until the
 * next change. For a
 * visitor who wants less motion, it calls draw at most twice a second.
 */
export function everyFrame(draw, pause) {
  let last = 0;
  let changed = true;
  let moving = false;
  let asked = false;
  const ask = () => {
    if (!asked) requestAnimationFrame(frame);
    asked = true;
  };
  const frame = (now) => {
    asked = false;
    const wait = pause();
    const goesOn = wait < Infinity;
    const rests = moving && !goesOn; // so that the rest is visible
    if (changed || rests || (goesOn && now - last >= (quiet.matches ? 500 : wait))) {
      last = now;
      moving = goesOn;
      changed = false;
      draw();
    }
    if (moving || pause() < Infinity) ask(); // the draw may have begun the journey of a mark
  };
  ask();
  return () => { changed = true; ask(); };
}
