"use strict";
const COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#7a5c00", "#56b4e9"];
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function shades(chart) {
  const tasks = [...new Set(chart.shades.map((s) => s[2]))];
  return (u) => {
    const { left, top, width, height } = u.bbox;
    u.ctx.save();
    u.ctx.beginPath(); u.ctx.rect(left, top, width, height); u.ctx.clip();
    for (const [from, to, text] of chart.shades) {
      const a = u.valToPos(from, "x", true), b = u.valToPos(to, "x", true);
      u.ctx.globalAlpha = text.includes("test") ? 0.06 : 0.16;
      u.ctx.fillStyle = COLOURS[tasks.indexOf(text) % COLOURS.length];
      u.ctx.fillRect(a, top, b - a, height);
    }
    u.ctx.restore();
  };
}

function draw(box) {
  const chart = charts[Number(box.dataset.chart)], data = [chart.x], series = [{ label: chart.label }], bands = [];
  Object.entries(chart.lines).forEach(([name, values], i) => {
    const stroke = COLOURS[i % COLOURS.length];
    data.push(values); series.push({ label: name, stroke, width: 2, spanGaps: true, points: { show: chart.x.length < 40 } });
    const band = chart.bands[name];
    if (!band) return;
    const at = data.length;
    data.push(band[1], band[0]);
    for (const end of ["high", "low"]) series.push({ label: `${name}, ${end}`, stroke: stroke + "55", width: 1, points: { show: false } });
    bands.push({ series: [at, at + 1], fill: stroke + "33" });
  });
  const axis = { stroke: css("--ink"), grid: { stroke: css("--line") }, ticks: { stroke: css("--line") } };
  box.textContent = "";
  const options = { width: Math.max(280, box.clientWidth), height: 300, series, bands, axes: [{ ...axis, label: chart.label }, axis], scales: { x: { time: false } } };
  if (chart.shades.length) options.hooks = { drawClear: [shades(chart)] };
  new uPlot(options, data, box);
}

function sortable(table) {
  table.querySelectorAll("thead th").forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button"; button.append(...head.childNodes); head.append(button);
    button.addEventListener("click", () => {
      const up = head.getAttribute("aria-sort") !== "ascending";
      table.querySelectorAll("thead th").forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const key = (row) => { const cell = row.cells[column], v = cell.querySelector("[data-value]"); const text = cell.textContent; return v ? Number(v.dataset.value) : text !== "" && isFinite(text) ? Number(text) : text; };
      const rows = [...table.tBodies[0].rows].sort((a, b) => {
        const x = key(a), y = key(b);
        const order = typeof x === "number" && typeof y === "number" ? x - y : String(x).localeCompare(String(y), "en", { numeric: true });
        return up ? order : -order;
      });
      table.tBodies[0].append(...rows);
    });
  });
}

const charts = JSON.parse(document.getElementById("charts").textContent);
const boxes = [...document.querySelectorAll("[data-chart]")];
boxes.forEach(draw);
document.querySelectorAll("table").forEach(sortable);
let waiting;
window.addEventListener("resize", () => { clearTimeout(waiting); waiting = setTimeout(() => boxes.forEach(draw), 150); });
document.body.dataset.ready = "yes";
