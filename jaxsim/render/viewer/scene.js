"use strict";
// The picture of one tick on a canvas: perspective of a turning camera, nearest things last.

const VIEWS = { corner: [-0.44, 0.32, 3.9], side: [0, 0.02, 3.6], top: [0, 1.5607, 3.7], first: [0, 0, 0] };
const NAMES = "paper ink line tile-a tile-b wall edge panel shadow cart pole block say truth hit".split(" ");
const CART = { radius: 0.5, low: 0.1, high: 0.3 }, PIVOT = 0.2, GAP = 0.05, FIELD = 1.42;

// Colours by name, read once: asking for the style at each stroke would lay the page out anew.
let palette = {};
function readColours() {
  const style = getComputedStyle(document.documentElement);
  palette = Object.fromEntries(NAMES.map((name) => [name, style.getPropertyValue("--" + name).trim()]));
}

function cameraOf(look, film, now) {
  const middle = [0, 0, (film.floor + film.ceiling) / 2];
  const size = Math.max(film.half, (film.ceiling - film.floor) / 2);
  let eye, target = middle;
  if (look.view === "first") {
    eye = [now.cart[0], now.cart[1] - 1.7, 1.35];
    target = [now.cart[0], now.cart[1] + 3, 1.3];
  } else {
    const [turn, lift, far] = look.orbit, flat = Math.cos(lift) * far * size;
    eye = [Math.sin(turn) * flat, -Math.cos(turn) * flat, middle[2] + Math.sin(lift) * far * size];
  }
  const ahead = unit([target[0] - eye[0], target[1] - eye[1], target[2] - eye[2]]);
  const right = unit([ahead[1], -ahead[0], 0]);
  return { eye, ahead, right, up: cross(right, ahead), zoom: look.view === "first" ? 0.62 : FIELD };
}

function unit(a) { const n = Math.hypot(...a) || 1; return a.map((x) => x / n); }
function cross(a, b) {
  return [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
}
function dot(a, b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }
function minus(a, b) { return [a[0] - b[0], a[1] - b[1], a[2] - b[2]]; }

class Painter {
  constructor(canvas, film, look, now) {
    const scale = window.devicePixelRatio || 1, box = canvas.getBoundingClientRect();
    const wide = Math.max(1, Math.round(box.width * scale)), high = Math.max(1, Math.round(box.height * scale));
    if (canvas.width !== wide || canvas.height !== high) { canvas.width = wide; canvas.height = high; }
    this.pen = canvas.getContext("2d");
    this.wide = wide; this.high = high; this.film = film; this.now = now;
    this.camera = cameraOf(look, film, now);
    this.focal = this.camera.zoom * Math.min(wide, high * 1.1);
    this.colour = (name) => palette[name];
  }

  at(point) {
    const to = minus(point, this.camera.eye), depth = Math.max(dot(to, this.camera.ahead), 0.05);
    const s = this.focal / depth;
    return [this.wide / 2 + dot(to, this.camera.right) * s, this.high / 2 - dot(to, this.camera.up) * s, depth];
  }

  // A polygon, cut off in front of the eye.
  face(points, fill, stroke, width) {
    const near = 0.1, depth = (p) => dot(minus(p, this.camera.eye), this.camera.ahead), kept = [];
    points.forEach((a, i) => {
      const b = points[(i + 1) % points.length], da = depth(a) - near, db = depth(b) - near;
      if (da >= 0) kept.push(a);
      if ((da < 0) !== (db < 0)) { const t = da / (da - db); kept.push(a.map((x, k) => x + t * (b[k] - x))); }
    });
    if (kept.length < 3) return;
    this.pen.beginPath();
    kept.forEach((p, i) => { const [x, y] = this.at(p); if (i) this.pen.lineTo(x, y); else this.pen.moveTo(x, y); });
    this.pen.closePath();
    if (fill) { this.pen.fillStyle = fill; this.pen.fill(); }
    if (stroke) { this.pen.strokeStyle = stroke; this.pen.lineWidth = width || 1; this.pen.stroke(); }
  }

  draw() {
    const pen = this.pen;
    pen.fillStyle = this.colour("paper");
    pen.fillRect(0, 0, this.wide, this.high);
    this.room(); this.trail(); this.shadows();
    const things = [];
    this.now.blocks.forEach((p) => things.push([p, () => this.ball(p)]));
    const cart = [...this.now.cart, (CART.low + CART.high) / 2];
    things.push([cart, () => this.cart()]);
    this.rods().forEach(([a, b]) => {
      const middle = a.map((x, i) => (x + b[i]) / 2 + 0.02 * (i === 2));
      things.push([middle, () => this.rod(a, b)]);
    });
    const far = ([p]) => { const d = minus(p, this.camera.eye); return dot(d, d); };
    things.sort((a, b) => far(b) - far(a)).forEach(([, paint]) => paint());
  }

  room() {
    const { half, floor, ceiling } = this.film, eye = this.camera.eye, edge = this.colour("edge");
    const wall = this.colour("wall"), h = half;
    const sides = [[[-h, -h], [h, -h], [0, -1]], [[h, h], [-h, h], [0, 1]], [[h, -h], [h, h], [1, 0]], [[-h, h], [-h, -h], [-1, 0]]];
    sides.forEach(([a, b, n]) => {
      if (eye[0] * n[0] + eye[1] * n[1] > h) return;
      this.face([[...a, floor], [...b, floor], [...b, ceiling], [...a, ceiling]], wall, edge, 1.2);
    });
    if (eye[2] < floor) return;
    const cells = Math.min(24, Math.max(2, Math.round(2 * h))), step = (2 * h) / cells;
    for (let i = 0; i < cells; i++) for (let j = 0; j < cells; j++) {
      const x = -h + i * step, y = -h + j * step;
      const fill = this.colour((i + j) % 2 ? "tile-a" : "tile-b");
      this.face([[x, y, floor], [x + step, y, floor], [x + step, y + step, floor], [x, y + step, floor]], fill, fill, 1);
    }
    this.face([[-h, -h, floor], [h, -h, floor], [h, h, floor], [-h, h, floor]], null, edge, 1.2);
  }

  trail() {
    const pen = this.pen, z = this.film.floor + 0.01;
    pen.strokeStyle = this.colour("cart"); pen.globalAlpha = 0.45; pen.lineWidth = 1.5;
    pen.beginPath();
    this.now.path.forEach((p, i) => { const [x, y] = this.at([...p, z]); if (i) pen.lineTo(x, y); else pen.moveTo(x, y); });
    pen.stroke(); pen.globalAlpha = 1;
  }

  ring(x, y, z, radius) {
    return Array.from({ length: 32 }, (_, i) => {
      const a = (i / 32) * 2 * Math.PI;
      return [x + radius * Math.cos(a), y + radius * Math.sin(a), z];
    });
  }

  shadows() {
    const z = this.film.floor + 0.005, dark = this.colour("shadow"), h = this.film.half;
    const inside = (p) => Math.abs(p[0]) < h && Math.abs(p[1]) < h;
    this.now.blocks.filter(inside).forEach((p) => this.face(this.ring(p[0], p[1], z, this.film.radius), dark));
    this.face(this.ring(...this.now.cart, z, CART.radius), dark);
  }

  cart() {
    const [x, y] = this.now.cart, low = this.ring(x, y, CART.low, CART.radius), high = this.ring(x, y, CART.high, CART.radius);
    const colour = this.colour("cart"), to = unit(minus([x, y, 0], this.camera.eye));
    low.forEach((p, i) => {
      const k = (i + 1) % 32, n = [p[0] - x, p[1] - y, 0];
      if (dot(n, to) > 0.02) return;
      this.face([p, low[k], high[k], high[i]], shade(colour, 0.62 + 0.3 * Math.max(0, -0.6 * n[0] - 0.8 * n[1])), null);
    });
    this.face(high, colour, shade(colour, 0.75), 1);
    if (this.now.hit) this.face(this.ring(x, y, CART.high, 0.75), null, this.colour("hit"), 3 * (window.devicePixelRatio || 1));
  }

  // The pole in pieces, which are sorted among the blocks.
  rods() {
    const base = [...this.now.cart, PIVOT], pieces = Math.max(6, Math.round(this.film.pole * 4));
    const at = (s) => base.map((x, i) => x + this.now.lean[i] * (GAP + this.film.pole * s));
    return Array.from({ length: pieces }, (_, i) => [at(i / pieces), at((i + 1) / pieces)]);
  }

  rod(a, b) {
    const pen = this.pen, [ax, ay, depth] = this.at(a), [bx, by] = this.at(b);
    pen.strokeStyle = this.colour("pole"); pen.lineCap = "round";
    pen.lineWidth = Math.max(2.5 * (window.devicePixelRatio || 1), (0.06 * this.focal) / depth);
    pen.beginPath(); pen.moveTo(ax, ay); pen.lineTo(bx, by); pen.stroke();
  }

  ball(p) {
    const [x, y, depth] = this.at(p), pen = this.pen;
    if (depth < 0.3) return;
    const r = Math.max(1, (this.film.radius * this.focal) / depth), colour = this.colour("block");
    const light = pen.createRadialGradient(x - 0.35 * r, y - 0.4 * r, 0.1 * r, x, y, r);
    light.addColorStop(0, shade(colour, 1.25)); light.addColorStop(0.7, colour); light.addColorStop(1, shade(colour, 0.6));
    pen.fillStyle = light; pen.beginPath(); pen.arc(x, y, r, 0, 2 * Math.PI); pen.fill();
  }
}

function shade(hex, by) {
  const part = (i) => Math.min(255, Math.round(parseInt(hex.slice(i, i + 2), 16) * by));
  return `rgb(${part(1)},${part(3)},${part(5)})`;
}
