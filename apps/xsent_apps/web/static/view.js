// Draws the map: where points are on the canvas, and how they look.

import { cut, shapeOf } from "./dom.js";

const SHAPES = ["circle", "square", "diamond"]; // besides colours, for people who cannot tell them apart
const MARGIN = 28;
const LETTERS = 28; // most letters of a label, if there is room
const LABELS = 60;
const NAME_LETTERS = 32; // most letters of a group's name
const PHONE = 500; // a narrower canvas, in pixels, is that of a phone
const PHONE_LETTERS = 12; // most letters of a group's name on a phone
// Where a name may be, in pixels from the middle of its group: nearest first, in twelve directions.
const AROUND = Array.from({ length: 61 }, (_, i) => {
  const [far, turn] = [8 * Math.ceil(i / 12), (i * Math.PI) / 6];
  return [2 * far * Math.sin(turn), far * Math.cos(turn)]; // names are wide
});
const BUTTONS = [64, 144]; // size in pixels of the corner with the buttons

/** @typedef {{x: number, y: number, colour: number, text: string, neighbours: number[]}} Point */

export class View {
  /** @type {Point[]} */
  points = [];
  chosen = -1;
  /** @type {Set<number>} points nearest to the query */
  ringed = new Set();
  /** @type {{name: string, x: number, y: number}[]} of groups, the largest first, each in the middle of its group */
  names = [];
  #zoom = 1;
  #centre = [0, 0];
  #fit = 1; // pixels per unit at zoom 1

  /** @param {HTMLCanvasElement} canvas */
  constructor(canvas) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d");
  }

  get size() {
    return [this.canvas.clientWidth, this.canvas.clientHeight];
  }

  /** Shows all points. */
  showAll() {
    const range = (axis) => {
      const values = this.points.map((point) => point[axis]);
      return [Math.min(...values, Infinity), Math.max(...values, -Infinity)];
    };
    const [[left, right], [top, bottom]] = [range("x"), range("y")];
    const [width, height] = this.size;
    this.#zoom = 1;
    this.#centre = this.points.length ? [(left + right) / 2, (top + bottom) / 2] : [0, 0];
    const spread = [(width - 2 * MARGIN) / (right - left || 1), (height - 2 * MARGIN) / (bottom - top || 1)];
    this.#fit = Math.max(1, Math.min(...spread));
    this.draw();
  }

  /** Zooms around a place on the canvas, by default its middle. */
  zoomBy(factor, at = this.size.map((side) => side / 2)) {
    const zoom = Math.min(40, Math.max(0.5, this.#zoom * factor));
    const [x, y] = this.#unplace(at);
    this.#zoom = zoom;
    const [ax, ay] = this.#place({ x, y });
    this.moveBy(at[0] - ax, at[1] - ay);
  }

  /** Moves the view by pixels. */
  moveBy(dx, dy) {
    const unit = this.#fit * this.#zoom;
    this.#centre = [this.#centre[0] - dx / unit, this.#centre[1] - dy / unit];
    this.draw();
  }

  /** The point within reach of a place on the canvas, or -1. */
  pointAt([x, y], reach = 16) {
    let [best, distance] = [-1, reach];
    this.points.forEach((point, i) => {
      const [px, py] = this.#place(point);
      const own = Math.hypot(px - x, py - y);
      if (own < distance) [best, distance] = [i, own];
    });
    return best;
  }

  /** The next point from the chosen one in a direction, or the chosen one itself. */
  towards(dx, dy) {
    const from = this.points[this.chosen];
    if (!from) return this.points.length ? Math.max(0, this.pointAt(this.size.map((side) => side / 2), Infinity)) : -1;
    let [best, cost] = [this.chosen, Infinity];
    this.points.forEach((point, i) => {
      const [px, py] = [point.x - from.x, point.y - from.y];
      const along = px * dx + py * dy;
      const aside = Math.abs(px * dy - py * dx);
      if (i !== this.chosen && along > aside / 2 && along + 2 * aside < cost) [best, cost] = [i, along + 2 * aside];
    });
    return best;
  }

  /** Chooses a point, and with `follow` moves the view so that it is visible. */
  choose(index, follow = false) {
    this.chosen = index;
    if (follow && this.points[index]) {
      const [x, y] = this.#place(this.points[index]);
      const [width, height] = this.size;
      const into = (value, side) => Math.min(side - MARGIN, Math.max(MARGIN, value)) - value;
      this.moveBy(into(x, width), into(y, height));
    } else this.draw();
  }

  draw() {
    const { canvas, context } = this;
    const [width, height] = this.size;
    const ratio = devicePixelRatio || 1;
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
      [canvas.width, canvas.height] = [Math.round(width * ratio), Math.round(height * ratio)];
    }
    const style = getComputedStyle(canvas);
    const colour = (name) => style.getPropertyValue(`--${name}`);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    const chosen = this.points[this.chosen];
    context.strokeStyle = colour("quiet");
    context.lineWidth = 1;
    for (const neighbour of chosen?.neighbours ?? []) this.#line(chosen, this.points[neighbour]);
    const radius = Math.min(7, Math.max(3.5, 60 / Math.sqrt(this.points.length || 1)) * this.#zoom ** 0.25);
    this.points.forEach((point, i) => {
      const shown = !chosen || i === this.chosen || chosen.neighbours.includes(i);
      context.globalAlpha = shown ? 1 : 0.35;
      context.fillStyle = colour(point.colour < 0 ? "quiet" : `c${point.colour % 9}`);
      this.#shape(this.#place(point), SHAPES[shapeOf(point.colour)], i === this.chosen ? radius * 1.5 : radius);
      context.globalAlpha = 1;
      context.strokeStyle = colour("ink");
      if (this.ringed.has(i) || i === this.chosen) this.#ring(this.#place(point), radius * 2);
    });
    this.label(colour, radius);
  }

  /** The picture with its background. @returns {Promise<Blob>} a PNG */
  toPng() {
    const { width, height } = this.canvas;
    const copy = new OffscreenCanvas(width, height);
    const context = copy.getContext("2d");
    context.fillStyle = getComputedStyle(this.canvas).getPropertyValue("--card");
    context.fillRect(0, 0, width, height);
    context.drawImage(this.canvas, 0, 0);
    return copy.convertToBlob();
  }

  /** Writes the names of groups, unless a point is chosen, and the beginnings of passages wherever there is room. */
  label(colour, radius) {
    const { context } = this;
    const [width, height] = this.size;
    const font = getComputedStyle(this.canvas).fontFamily;
    const chosen = this.points[this.chosen];
    const first = chosen ? [this.chosen, ...chosen.neighbours] : [...this.ringed];
    const order = [...new Set([...first, ...(chosen || this.names.length ? [] : this.points.keys())])];
    const avoided = chosen ? first.map((i) => this.points[i]) : this.points; // the others are faint in that case
    const side = radius + 1;
    const dots = avoided.map((point) => this.#place(point)).map(([x, y]) => [x - side, y - side, x + side, y + side]);
    const taken = [[width - BUTTONS[0], 0, width, BUTTONS[1]]];
    context.textBaseline = "middle";
    context.strokeStyle = colour("card"); // an outline, to be readable over points and lines
    context.lineWidth = 4;
    context.fillStyle = colour("ink");
    context.font = `600 ${width < PHONE ? 12 : 14}px ${font}`;
    if (!chosen) this.#writeNames(taken, dots);
    taken.push(...dots);
    const letters = Math.min(LETTERS, Math.round(width / 24));
    context.font = `12px ${font}`;
    if (!chosen) context.fillStyle = colour("quiet");
    let written = 0;
    for (const i of order) {
      if (written >= LABELS) return;
      const label = cut(this.points[i].text, letters);
      const [x, y] = this.#place(this.points[i]);
      const wide = context.measureText(label).width;
      const box = [[x + 10, y - 8, x + 14 + wide, y + 8], [x - 14 - wide, y - 8, x - 10, y + 8]].find(
        (one) => one[0] > 0 && one[1] > 0 && one[2] < width && one[3] < height && !taken.some((other) => overlap(one, other)),
      );
      if (!box) continue;
      taken.push(box);
      context.strokeText(label, box[0] + 2, y);
      context.fillText(label, box[0] + 2, y);
      written++;
    }
  }

  /** Writes groups' names near their middles where they hide no point; on phones and in crowds only the first word. */
  #writeNames(taken, dots) {
    const { context } = this;
    const [width, height] = this.size;
    for (const group of this.names) {
      const [x, y] = this.#place(group);
      if (x <= 0 || x >= width || y <= 8 || y >= height - 8) continue;
      const short = cut(group.name.split(", ")[0], width < PHONE ? PHONE_LETTERS : NAME_LETTERS);
      const names = width < PHONE ? [short] : [cut(group.name, NAME_LETTERS), short];
      const places = names.flatMap((name) => this.#around(name, x, y));
      const free = places.filter(({ box }) => !taken.some((other) => overlap(box, other)));
      const clear = free.find(({ box }) => !dots.some((dot) => overlap(box, dot)));
      const { name, box } = clear ?? free.find((place) => place.name === short) ?? {};
      if (!box) continue;
      taken.push(box);
      context.strokeText(name, box[0] + 2, box[1] + 8);
      context.fillText(name, box[0] + 2, box[1] + 8);
    }
  }

  /** Places for a name around a place on the canvas, fully visible even at the edge. */
  #around(name, x, y) {
    const [width, height] = this.size;
    const wide = this.context.measureText(name).width + 4;
    const into = (value, most) => Math.max(2, Math.min(most - 2, value));
    return AROUND.map(([dx, dy]) => {
      const [left, top] = [into(x + dx - wide / 2, width - wide), into(y + dy - 8, height - 16)];
      return { name, box: [left, top, left + wide, top + 16] };
    });
  }

  #place({ x, y }) {
    const unit = this.#fit * this.#zoom;
    const [width, height] = this.size;
    return [width / 2 + (x - this.#centre[0]) * unit, height / 2 + (y - this.#centre[1]) * unit];
  }

  #unplace([px, py]) {
    const unit = this.#fit * this.#zoom;
    const [width, height] = this.size;
    return [(px - width / 2) / unit + this.#centre[0], (py - height / 2) / unit + this.#centre[1]];
  }

  #line(from, to) {
    this.context.beginPath();
    this.context.moveTo(...this.#place(from));
    this.context.lineTo(...this.#place(to));
    this.context.stroke();
  }

  #ring([x, y], radius) {
    this.context.beginPath();
    this.context.arc(x, y, radius, 0, 2 * Math.PI);
    this.context.stroke();
  }

  #shape([x, y], shape, radius) {
    const { context } = this;
    context.beginPath();
    if (shape === "circle") context.arc(x, y, radius, 0, 2 * Math.PI);
    else {
      const turn = shape === "square" ? Math.PI / 4 : 0;
      for (let corner = 0; corner < 4; corner++) {
        const angle = turn + (corner * Math.PI) / 2;
        context.lineTo(x + 1.2 * radius * Math.cos(angle), y + 1.2 * radius * Math.sin(angle));
      }
    }
    context.fill();
  }
}

/** Whether two boxes [left, top, right, bottom] touch. */
function overlap(a, b) {
  return a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3];
}
