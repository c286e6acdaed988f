// The places of the marks of a track. Requests of one instant stand in columns, so that each can be seen and chosen.

const sizes = [15, 12, 9, 7, 5, 3]; // px of a mark, with its gap
const most = 1000; // marks

export class Marks {
  all = [];
  #scale = ""; // of the picture, and the number of marks
  #size = sizes[0]; // that fits
  #placed = ""; // the scale and the size with which the marks have their places

  add(mark) {
    this.all.push(mark);
    if (this.all.length > most) this.all.shift();
  }

  /** The largest size with which every mark has a place near its time. */
  fit({ perPixel, up, down }) {
    const scale = `${perPixel} ${up} ${down} ${this.all.length} ${this.all[0]?.at}`;
    if (scale !== this.#scale) {
      this.#scale = scale;
      this.#size = sizes.find((px) => this.#fill(px, px * perPixel, up, down)) ?? sizes.at(-1);
    }
    return this.#size;
  }

  /** Sets size, x and away (px from the limit) of each mark. up and down are the heights of the two lanes. */
  place(size, { x, perPixel, up, down }) {
    const placed = `${this.#scale} ${size}`;
    if (placed !== this.#placed) this.#fill(size, size * perPixel, up, down);
    this.#placed = placed;
    for (const mark of this.all) Object.assign(mark, { size, x: x(mark.slot) });
  }

  /** Fills columns of a width in ms. Reports whether every mark has a place near its time. */
  #fill(px, wide, up, down) {
    const heights = new Map();
    let fits = true;
    for (const mark of this.all) {
      const lane = mark.what === "allowed" || mark.what === "refused" ? "up" : "down";
      const rows = Math.max(1, Math.floor((lane === "up" ? up : down) / px));
      let column = Math.floor(mark.at / wide);
      const first = column;
      while ((heights.get(lane + column) ?? 0) >= rows) column -= 1; // to earlier columns, because later ones are not there yet
      fits &&= first - column <= 2;
      const row = heights.get(lane + column) ?? 0;
      heights.set(lane + column, row + 1);
      mark.slot = (column + 0.5) * wide;
      mark.away = (row + 0.5) * px;
    }
    return fits;
  }
}
