// Making elements, reading the values of the page, and writing numbers.
// Whatever comes from a session goes into a page as text, never as markup.

function element(tag, properties, ...children) {
  return filled(document.createElement(tag), properties, children);
}

function filled(made, properties, children) {
  for (const [name, value] of Object.entries(properties || {})) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined)
      made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined && child !== ""));
  return made;
}

function valuesOf(id) {
  return JSON.parse(document.getElementById(id).textContent);
}

// What an element holds compressed.
async function textOf(id) {
  const bytes = Uint8Array.from(atob(document.getElementById(id).textContent), (one) => one.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).text();
}

const rowsRead = new Map();

// Reads tables that were not read yet; their rows are the same objects each time.
async function readRows(ids) {
  const read = async (id) => rowsRead.set(id, JSON.parse(await textOf(id)));
  await Promise.all(ids.filter((id) => !rowsRead.has(id)).map(read));
}

// The rows of a table that was read.
function rowsOf(id) {
  return rowsRead.get(id);
}

// In UTC, as the day was taken.
const days = new Intl.DateTimeFormat("en", { dateStyle: "medium", timeZone: "UTC" });

function dayText(day) {
  return days.format(new Date(`${day}T00:00:00Z`));
}

const wholeNumbers = new Intl.NumberFormat("en");

function whole(number) {
  return wholeNumbers.format(number);
}

function short(number) {
  if (number < 1000) return String(number);
  for (const [unit, size] of [
    ["k", 1e3],
    ["M", 1e6],
  ]) {
    if (number < size * 999.5) return `${Number((number / size).toPrecision(3))}${unit}`;
  }
  return `${Number((number / 1e9).toPrecision(3))}G`;
}

function dollars(number) {
  return `$${number.toLocaleString("en", { minimumFractionDigits: 2, maximumFractionDigits: 2 })}`;
}

// Less than a cent says nothing.
const CENT = 0.01;

function signedDollars(number) {
  const size = Math.abs(number);
  if (size < CENT / 2) return "$0.00";
  return `${number < 0 ? "−" : "+"}${dollars(size)}`;
}

// How much less there is than before, as a person reads it: −37 %.
function change(before, after) {
  if (!before) return "0 %";
  const share = Math.round((100 * (after - before)) / before);
  return `${share > 0 ? "+" : share < 0 ? "−" : ""}${Math.abs(share)} %`;
}

function counted(number, one, many) {
  return `${whole(number)} ${number === 1 ? one : many || `${one}s`}`;
}

function section(title, ...children) {
  return element("section", {}, element("h2", {}, title), ...children);
}

// How a figure is known.
const MEASURED = "measured";
const ESTIMATED = "estimated";

function howKnown(word) {
  return element("span", { class: `known ${word}` }, word);
}

// A list of figures: the name of each, what it is, what else there is to say, and how it is known.
function figureList(figures) {
  const groups = figures.map(([name, value, note, known]) =>
    element(
      "div",
      {},
      element("dt", {}, name),
      element(
        "dd",
        {},
        value,
        note ? element("small", {}, note) : null,
        known ? howKnown(known) : null,
      ),
    ),
  );
  return element("dl", { class: "figures" }, ...groups);
}

// The values of an object as rows, each with its key.
function namedRows(values, key) {
  return Object.entries(values).map(([name, one]) => ({ [key]: name, ...one }));
}
