// A chart of lines and marks: a figure with a sentence, a drawing, and the same figures as a table.
// The lines are stretched to the width of the screen or the paper; labels and marks, which keep
// their form, are elements with a place in percent.

// They stand out from a light page as well as from a dark one.
const COLOURS = {
  without: "#7b8794",
  with: "#2f7de1",
  window: "#d9483b",
  removed: "#c27212",
  anew: "#9b5fd0",
};

// Paths in a square from -5 to 5.
const SHAPES = {
  circle: "M-5 0A5 5 0 1 0 5 0A5 5 0 1 0-5 0Z",
  square: "M-4.5-4.5H4.5V4.5H-4.5Z",
  diamond: "M0-5.5L5.5 0L0 5.5L-5.5 0Z",
  "triangle-down": "M-5-4H5L0 5Z",
  "triangle-up": "M-5 4H5L0-5Z",
  "triangle-left": "M4-5V5L-5 0Z",
  cross: "M-2-5H2V-2H5V2H2V5H-2V2H-5V-2H-2Z",
  x: "M-5-3L-3-5L0-2L3-5L5-3L2 0L5 3L3 5L0 2L-3 5L-5 3L-2 0Z",
  star: "M0-5.5L1.4-1.9L5.2-1.7L2.3 .7L3.2 4.5L0 2.4L-3.2 4.5L-2.3 .7L-5.2-1.7L-1.4-1.9Z",
  hexagon: "M-2.7-4.7H2.7L5.4 0L2.7 4.7H-2.7L-5.4 0Z",
  pentagon: "M0-5.2L5-1.6L3.1 4.3H-3.1L-5-1.6Z",
};

// A series has a `name`, a `colour`, `points` of x and y, and a `line` of a width, or a `shape`.
// An axis has a `title`, the `format` of its numbers, and the `least` between two; y begins at 0.
// A target is a place of the pointer that has a `text`: a point, or every y of an x.
function chart({ name, sentence, series, x, y, targets, table }) {
  const drawn = series.filter(({ points }) => points.length);
  const all = drawn.flatMap(({ points }) => points);
  const across = leastAndMost(all.map(([at]) => at));
  const xTicks = ticks(across, 8, x.least).filter((at) => at >= across[0] && at <= across[1]);
  const yTicks = ticks([0, ...all.map(([, at]) => at)], 5, y.least);
  const left = placing(padded(across));
  const bottom = placing(yTicks);
  const area = element(
    "div",
    { class: "area" },
    ...yTicks.map((at) => element("span", { class: "tick-y", style: `bottom:${bottom(at)}%` }, y.format(at))),
    ...xTicks.map((at) => element("span", { class: "tick-x", style: `left:${left(at)}%` }, x.format(at))),
    svg(
      "svg",
      { viewBox: "0 0 100 100", preserveAspectRatio: "none" },
      ...drawn.filter((one) => one.line).map((one) => line(one, left, bottom)),
    ),
    ...drawn.filter((one) => one.shape).flatMap((one) =>
      one.points.map(([a, b]) => mark(one, `left:${left(a)}%;bottom:${bottom(b)}%;`)),
    ),
  );
  const said = element("div", { class: "readout" });
  const show = (event) => said.replaceChildren(nearest(targets, left, bottom, area, event).text);
  area.addEventListener("pointermove", show);
  area.addEventListener("pointerdown", show);
  const drawing = element(
    "div",
    { class: "chart", role: "img", "aria-label": `${name}. ${sentence}` },
    element("div", { class: "legend" }, ...drawn.map((one) => element("span", {}, sample(one), one.name))),
    element("div", { class: "axis-title" }, y.title),
    area,
    element("div", { class: "axis-title of-x" }, x.title),
    said,
  );
  return figure(name, sentence, drawing, table);
}

const leastAndMost = (numbers) =>
  numbers.reduce(([least, most], one) => [Math.min(least, one), Math.max(most, one)], [Infinity, -Infinity]);

function padded([least, most]) {
  const more = (most - least) / 50 || 0.5;
  return [least - more, most + more];
}

// About so many round numbers, the first and the last of them around the numbers.
function ticks(numbers, wanted, leastStep) {
  const [least, most] = leastAndMost(numbers);
  const rough = (most - least || 1) / wanted;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = Math.max(leastStep, power * [1, 2, 5, 10].find((one) => one * power >= rough));
  const first = Math.floor(least / step);
  const number = Math.max(1, Math.ceil(most / step) - first) + 1;
  return Array.from({ length: number }, (_, i) => Number(((first + i) * step).toPrecision(9)));
}

// Returns the place of a number between the least and the most, in percent.
function placing(numbers) {
  const [least, most] = leastAndMost(numbers);
  return (number) => (100 * (number - least)) / (most - least);
}

// The drawing that it is in has a name; it has none of its own.
function svg(tag, properties, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  return filled(made, { ...properties, "aria-hidden": "true" }, children);
}

const stroke = ({ colour, line: { width, dash } }) => ({
  stroke: colour,
  "stroke-width": width,
  "stroke-dasharray": dash,
});

// From one point to the next, or across and then up where the value holds until the next point.
function line(one, left, bottom) {
  const { points } = one;
  const way = one.line.isStepped
    ? points.flatMap(([x, y], i) => (i ? [[x, points[i - 1][1]], [x, y]] : [[x, y]]))
    : points;
  const places = way.map(([x, y]) => `${left(x).toFixed(3)},${(100 - bottom(y)).toFixed(3)}`);
  return svg("polyline", { points: places.join(" "), ...stroke(one) });
}

function mark({ colour, shape, size, isOpen }, place) {
  const paint = isOpen ? { fill: "none", stroke: colour, "stroke-width": 2 } : { fill: colour };
  const style = `${place}width:${size}px;height:${size}px`;
  return svg("svg", { class: "mark", viewBox: "-6.5 -6.5 13 13", style }, svg("path", { d: SHAPES[shape], ...paint }));
}

function sample(one) {
  const way = one.line ? svg("line", { x2: 24, y1: 6, y2: 6, ...stroke(one) }) : "";
  return element(
    "i",
    { class: "sample" },
    one.line ? svg("svg", { viewBox: "0 0 24 12" }, way) : "",
    one.shape ? mark(one, "left:50%;bottom:50%;") : "",
  );
}

// The target that is nearest to the pointer; one without a y is as near at every height.
function nearest(targets, left, bottom, area, event) {
  const box = area.getBoundingClientRect();
  const distance = ({ x, y = null }) =>
    Math.hypot(
      box.left + (left(x) * box.width) / 100 - event.clientX,
      y === null ? 0 : box.bottom - (bottom(y) * box.height) / 100 - event.clientY,
    );
  return targets.reduce((one, other) => (distance(other) < distance(one) ? other : one));
}

// A drawing between its sentence and its figures, which are made when they are unfolded.
function figure(name, sentence, drawing, table) {
  const figures = element("details", {}, element("summary", {}, `${name}: the figures`));
  figures.addEventListener("toggle", () => {
    if (figures.open && figures.children.length === 1) figures.append(new DataTable(table).element);
  });
  return element(
    "figure",
    { "aria-label": name },
    element("figcaption", {}, sentence),
    drawing,
    figures,
  );
}
