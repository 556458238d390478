// Bar charts made of elements, so that they are as wide as the screen or the paper, and their labels
// wrap. A row has a `label`, a `value` to read, and `parts`: how large each `kind` is, below 0 to
// the left. A kind has a `name` and a `look`, a class of the style sheet.

function barChart({ name, sentence, kinds, rows, format, table, marksSum = false }) {
  const sizes = rows.map((row) => sidesOf(row.parts));
  const [left, right] = ["left", "right"].map((side) => Math.max(0, ...sizes.map((one) => one[side])));
  const scale = 100 / (left + right || 1);
  const used = kinds.filter(({ kind }) => rows.some((row) => row.parts[kind]));
  const drawing = element(
    "div",
    { class: "bars", role: "img", "aria-label": `${name}. ${sentence}` },
    legend(used, marksSum),
    ...rows.map((row) =>
      element(
        "div",
        { class: "bar" },
        element(
          "div",
          { class: "bar-label" },
          element("bdi", {}, row.label),
          element("span", { class: "bar-value" }, row.value),
        ),
        track(row, used, { zero: left * scale, scale, format, marksSum, isTwoSided: left > 0 }),
      ),
    ),
  );
  return figure(name, sentence, drawing, table);
}

function sidesOf(parts) {
  const sizes = Object.values(parts);
  const sum = (sign) => sizes.reduce((all, size) => all + Math.max(0, sign * size), 0);
  return { left: sum(-1), right: sum(1) };
}

function legend(kinds, marksSum) {
  const entries = kinds.map(({ name, look }) =>
    element("span", {}, element("i", { class: `swatch ${look}` }), name),
  );
  if (marksSum) entries.push(element("span", {}, element("i", { class: "swatch sum" }), "net"));
  return element("div", { class: "legend" }, ...entries);
}

function track(row, kinds, { zero, scale, format, marksSum, isTwoSided }) {
  let [before, behind] = [zero, zero];
  const bars = [];
  for (const { kind, name, look } of kinds) {
    const size = row.parts[kind] || 0;
    if (!size) continue;
    const width = Math.abs(size) * scale;
    const at = size < 0 ? (before -= width) : behind;
    if (size > 0) behind += width;
    const title = `${name}: ${format(size)}`;
    bars.push(element("span", { class: `part ${look}`, title, style: `left:${at}%;width:${width}%` }));
  }
  if (isTwoSided) bars.push(element("span", { class: "zero", style: `left:${zero}%` }));
  if (marksSum) {
    const sum = Object.values(row.parts).reduce((all, size) => all + size, 0);
    bars.push(element("span", { class: "sum", style: `left:${zero + sum * scale}%` }));
  }
  return element("div", { class: "track" }, ...bars);
}
