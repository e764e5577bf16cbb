"use strict";
// Decoding, the line of time, and everything that answers to a hand.

async function unpacked(film) {
  const bytes = Uint8Array.from(atob(film.data), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  const words = new Int16Array(await new Response(stream).arrayBuffer());
  const rows = film.ticks + 1, columns = words.length / rows, table = [];
  for (let c = 0; c < columns; c++) {  // columns of differences
    const column = new Int16Array(rows);
    let sum = 0;
    for (let t = 0; t < rows; t++) { sum = (sum + words[c * rows + t]) << 16 >> 16; column[t] = sum; }
    table.push(column);
  }
  return table;
}

class Film {
  constructor(film, table) { Object.assign(this, film); this.table = table; }

  // The tick that is reached on the common clock.
  tickAt(moment) { return Math.min(this.ticks, Math.floor((moment * clock) / this.dt + 1e-6)); }

  at(tick) {
    const t = Math.min(tick, this.ticks), m = (c) => this.table[c][t] / 1000, blocks = [];
    for (let b = 0; b < this.slots; b++) {
      const c = 5 + 4 * b;
      if (this.table[c][t]) blocks.push([m(c + 1), m(c + 2), m(c + 3)]);
    }
    const path = [];
    for (let k = Math.max(0, t - 60); k <= t; k++) path.push([this.table[0][k] / 1000, this.table[1][k] / 1000]);
    const lean = [2, 3, 4].map((c) => this.table[c][t] / 30000);
    return { cart: [m(0), m(1)], lean, blocks, path, hit: this.contact[t] & 3 };
  }

  texts(tick) {
    const t = Math.min(tick, this.ticks), said = t > 0, k = t - 1;
    const hits = this.contacts.filter((_, bit) => this.contact[t] & (1 << bit));
    const texts = {
      time: `${(t * this.dt).toFixed(2)} s`, action: said ? this.names[this.action[k]] : "none yet",
      reward: (said ? this.reward[k] : 0).toFixed(3), contact: hits.join(", ") || "none",
    };
    if (this.probability) {
      texts["novelty"] = said ? this.probability[k].toFixed(3) : "nothing yet";
      texts["prediction"] = !said ? "none yet" : this.probability[k] >= this.threshold[k]
        ? (this.level[k] ? `novel, level ${this.level[k]}` : "novel") : "not novel";
    }
    texts["truth"] = this.truth;
    return texts;
  }
}

function element(tag, attributes, ...children) {
  const made = Object.assign(document.createElement(tag), attributes);
  made.append(...children);
  return made;
}

function card(film) {
  const scene = element("canvas", { className: "scene" }), line = element("canvas", { className: "line" });
  scene.setAttribute("role", "img"); line.setAttribute("role", "img");
  const list = element("dl"), values = {};
  for (const [name, text] of Object.entries(film.texts(0))) {
    values[name] = element("dd", { className: name }, text);
    list.append(element("div", {}, element("dt", {}, name), values[name]));
  }
  const key = element("p", { className: "key" });
  const marks = film.probability ? [["say", "what the agent says"], ["truth", "novel in truth"]] : [];
  for (const [name, text] of [...marks, ["cart", "reward so far"], ["hit", "block hits cart or pole"], ["edge", "other contacts"]]) {
    const sign = element("i"); sign.style.background = `var(--${name})`;
    key.append(element("span", {}, sign, text));
  }
  const root = element("article", {}, element("h2", {}, film.title), element("p", { className: "facts" }, film.facts));
  if (film.note) root.append(element("p", { className: "note" }, film.note));
  root.append(scene, line, key, list);
  document.getElementById("films").append(root);
  return { film, root, scene, line, values };
}

function drawLine({ film, line }, tick, most) {
  const painter = new Painter(line, film, look, film.at(0)), { pen, wide, high, colour } = painter;
  const scale = window.devicePixelRatio || 1, left = 8 * scale, right = wide - 8 * scale, top = 8 * scale, low = high - 24 * scale;
  const x = (t) => left + ((right - left) * t * film.dt) / (clock * Math.max(1, most)), y = (p) => low - (low - top) * p;
  pen.fillStyle = colour("panel"); pen.fillRect(0, 0, wide, high);
  if (film.novel) { pen.fillStyle = colour("truth"); pen.fillRect(left, top, x(film.ticks) - left, low - top); }
  pen.strokeStyle = colour("line"); pen.lineWidth = scale; pen.strokeRect(left, top, right - left, low - top);
  const curve = (values, name, dash) => {
    pen.strokeStyle = colour(name); pen.lineWidth = 2 * scale; pen.setLineDash(dash); pen.beginPath();
    values.forEach((v, t) => { if (t) pen.lineTo(x(t + 1), y(v)); else pen.moveTo(x(1), y(v)); });
    pen.stroke(); pen.setLineDash([]);
  };
  const best = Math.max(1e-9, ...cards.flatMap((one) => one.film.reward.map(Math.abs)));
  curve(film.reward.map((r) => Math.max(0, r / best)), "cart", []);
  if (film.probability) {
    curve(film.threshold, "say", [4 * scale, 4 * scale]);
    curve(film.probability, "say", []);
  }
  film.contact.forEach((bits, t) => {
    if (!bits) return;
    pen.fillStyle = colour(bits & 3 ? "hit" : "edge");
    pen.fillRect(x(t) - scale, low + 4 * scale, 2 * scale, (bits & 3 ? 14 : 8) * scale);
  });
  pen.fillStyle = colour("ink"); pen.fillRect(x(tick) - scale, top - 4 * scale, 2 * scale, low - top + 22 * scale);
}

const look = { view: "corner", orbit: [...VIEWS.corner] };
const state = { tick: 0, playing: false, speed: 1, last: 0, rest: 0 };
let cards = [], most = 1, clock = 0.02;  // s, the shortest tick of the films; all are shown at one time
const by = (id) => document.getElementById(id);

function show() {
  for (const one of cards) {
    const { film } = one, tick = film.tickAt(state.tick), now = film.at(tick), texts = film.texts(tick);
    new Painter(one.scene, film, look, now).draw();
    drawLine(one, tick, most);
    for (const [name, text] of Object.entries(texts)) if (one.values[name].textContent !== text) one.values[name].textContent = text;
    one.root.classList.toggle("hit", Boolean(now.hit));
    if (!state.playing) {
      one.scene.setAttribute("aria-label", `${film.title} at tick ${tick}: ${now.blocks.length} blocks, cart at ${now.cart.map((v) => v.toFixed(2)).join(", ")} m`);
      one.line.setAttribute("aria-label", `${film.title}: reward, predictions and contacts over ${film.ticks} ticks`);
    }
  }
  by("tick").value = state.tick; by("now").textContent = `${state.tick} / ${most}`;
  by("play").textContent = state.playing ? "Pause" : "Play";
}
function go(tick) { state.tick = Math.max(0, Math.min(most, tick)); show(); }
function play(on) {
  if (on && state.tick >= most) state.tick = 0;
  state.playing = on; state.last = performance.now(); state.rest = 0;
  show();
  if (on) requestAnimationFrame(advance);
}
function advance(now) {
  if (!state.playing) return;
  state.rest += (Math.min(250, now - state.last) / 1000) * state.speed; state.last = now;
  const steps = Math.floor(state.rest / clock);
  if (steps) { state.rest -= steps * clock; state.tick = Math.min(most, state.tick + steps); if (state.tick >= most) state.playing = false; show(); }
  if (state.playing) requestAnimationFrame(advance);
}
function setView(name) {
  look.view = name; by("view").value = name;
  if (VIEWS[name] && name !== "first") look.orbit = [...VIEWS[name]];
  show();
}
function turn(dx, dy, closer) {
  if (look.view === "first") look.orbit = [...VIEWS.corner];
  look.view = "free"; by("view").value = "free";
  look.orbit[0] -= dx * 0.01;
  look.orbit[1] = Math.max(-0.2, Math.min(1.56, look.orbit[1] + dy * 0.01));
  look.orbit[2] = Math.max(0.8, Math.min(9, look.orbit[2] * closer));
  show();
}
function speedBy(step) {
  const box = by("speed");
  box.selectedIndex = Math.max(0, Math.min(box.options.length - 1, box.selectedIndex + step));
  state.speed = Number(box.value);
}

function hands(canvas) {
  const fingers = new Map();
  const span = () => { const [a, b] = [...fingers.values()]; return b ? Math.hypot(a[0] - b[0], a[1] - b[1]) : 0; };
  canvas.addEventListener("pointerdown", (e) => { canvas.setPointerCapture(e.pointerId); fingers.set(e.pointerId, [e.clientX, e.clientY]); });
  canvas.addEventListener("pointermove", (e) => {
    const old = fingers.get(e.pointerId);
    if (!old) return;
    const before = span();
    fingers.set(e.pointerId, [e.clientX, e.clientY]);
    if (fingers.size > 1) turn(0, 0, before / Math.max(1, span())); else turn(e.clientX - old[0], e.clientY - old[1], 1);
  });
  for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, (e) => fingers.delete(e.pointerId));
  canvas.addEventListener("wheel", (e) => { e.preventDefault(); turn(0, 0, Math.exp(e.deltaY * 0.001)); }, { passive: false });
}
function scrub(canvas) {
  const seek = (e) => { const box = canvas.getBoundingClientRect(); play(false); go(Math.round(((e.clientX - box.left - 8) / (box.width - 16)) * most)); };
  canvas.addEventListener("pointerdown", (e) => { canvas.setPointerCapture(e.pointerId); seek(e); });
  canvas.addEventListener("pointermove", (e) => { if (e.buttons) seek(e); });
}

const KEYS = {
  " ": () => play(!state.playing), ArrowLeft: () => { play(false); go(state.tick - 1); },
  ArrowRight: () => { play(false); go(state.tick + 1); }, Home: () => go(0), End: () => go(most),
  "+": () => speedBy(1), "-": () => speedBy(-1),
  1: () => setView("corner"), 2: () => setView("side"), 3: () => setView("top"), 4: () => setView("first"),
};
document.addEventListener("keydown", (e) => {
  if (e.ctrlKey || e.metaKey || e.altKey || ["SELECT", "BUTTON"].includes(e.target.tagName) && e.key === " " || e.target.tagName === "SELECT") return;
  const act = KEYS[e.key];
  if (act) { e.preventDefault(); act(); }
});
by("play").onclick = () => play(!state.playing);
by("start").onclick = () => go(0);
by("end").onclick = () => go(most);
by("back").onclick = KEYS.ArrowLeft;
by("forward").onclick = KEYS.ArrowRight;
// `play` shows the present tick, in the slider too: what it was moved to is read before.
by("tick").oninput = (e) => { const tick = Number(e.target.value); play(false); go(tick); };
by("speed").onchange = (e) => { state.speed = Number(e.target.value); };
by("view").onchange = (e) => setView(e.target.value);
by("theme").onclick = () => theme(document.documentElement.dataset.theme !== "dark");
function theme(dark) { document.documentElement.dataset.theme = dark ? "dark" : "light"; readColours(); if (cards.length) show(); }

(async () => {
  theme(window.matchMedia("(prefers-color-scheme: dark)").matches);
  const films = JSON.parse(by("data").textContent);
  for (const film of films) cards.push(card(new Film(film, await unpacked(film))));
  clock = Math.min(...films.map((film) => film.dt));
  most = Math.max(...films.map((film) => Math.ceil((film.ticks * film.dt) / clock - 1e-6)));
  by("tick").max = most;
  cards.forEach((one) => { hands(one.scene); scrub(one.line); });
  window.addEventListener("resize", show);
  show();
  document.body.dataset.ready = "yes";
})();
