// The places of the marks of a track. Requests of one instant stand in columns, so that each can be seen and chosen.

const sizes = [15, 12, 9, 7, 5, 3]; // px of a mark, with its gap
const most = 1000; // marks

export class Marks {
  all = [];
  #placed = ""; // the scale and the number of marks that have places

  add(mark) {
    this.all.push(mark);
    if (this.all.length > most) this.all.shift();
  }

  /** Sets size, x and away (px from the limit) of each mark. up and down are the heights of the two lanes. */
  place({ x, perPixel, up, down }) {
    const scale = `${perPixel} ${up} ${down} ${this.all.length} ${this.all[0]?.at}`;
    if (scale !== this.#placed) {
      const size = sizes.find((px) => this.#fill(px, px * perPixel, up, down)) ?? sizes.at(-1);
      for (const mark of this.all) mark.size = size;
      this.#placed = scale;
    }
    for (const mark of this.all) mark.x = x(mark.slot);
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
