// The size of the context, call by call.

// Smaller ones would lie flat on the axis below a line for the window.
const NEAR_WINDOW = 1 / 4;

const largestOf = (calls, key) => Math.max(...calls.map((call) => call[key]));

// Whole numbers, or from the least to the largest of them.
function windowText(windows) {
  const [least, most] = [Math.min(...windows), Math.max(...windows)];
  return least === most ? whole(most) : `${whole(least)} to ${whole(most)}`;
}

function contextSentence(calls) {
  const largest = (key) => largestOf(calls, key);
  const over = (key) => calls.filter((call) => call[key] > call.window).length;
  const told = [
    `The largest of ${counted(calls.length, "context")} has ${whole(largest("without"))} tokens` +
      ` without the policy and ${whole(largest("with"))} with it;` +
      ` the window holds ${windowText(calls.map((call) => call.window))}.`,
  ];
  if (over("without")) {
    told.push(`Over the window: ${whole(over("without"))} → ${counted(over("with"), "call")}.`);
  }
  const times = calls.filter((call) => call.removed).length;
  const compacted = calls.filter((call) => call.compacted).length;
  if (times) told.push(`Before ${counted(times, "call")} the policy removed something.`);
  if (compacted)
    told.push(`Before ${counted(compacted, "call")} the policy replaced history by a summary.`);
  if (!times && !compacted) told.push("The policy removed nothing.");
  for (const [why, what] of Object.entries(NEW_LISTS)) {
    const number = calls.filter((call) => call.anew === why).length;
    if (number) told.push(`${number === 1 ? "Once" : `${counted(number, "time")},`} the recording ${what}.`);
  }
  return told.join(" ");
}

// What the recording did by itself where it has a new list.
const NEW_LISTS = {
  compaction: "summarised its history",
  rewind: "went back to an earlier point",
  change: "changed what it had sent before",
};

function contextChart(calls) {
  const isOne = calls.length === 1;
  const along = (key) => calls.map((call, i) => [i + 1, call[key]]);
  const line = (key, name, style) => ({
    name,
    colour: COLOURS[key],
    points: along(key),
    ...(isOne ? { shape: "circle", size: 9 } : { line: style }),
  });
  const limit = {
    name: "window",
    colour: COLOURS.window,
    points: isOne ? [0.5, 1.5].map((x) => [x, calls[0].window]) : along("window"),
    line: { width: 1.5, dash: "7 5", isStepped: true },
  };
  return chart({
    name: "Context over turns",
    sentence: contextSentence(calls),
    series: [
      line("without", "without the policy", { width: 2, dash: "2 3" }),
      line("with", "with the policy", { width: 2.5 }),
      ...(calls.some((call) => call.without >= call.window * NEAR_WINDOW) ? [limit] : []),
      marks(calls, "with", "the policy removed items", (call) => call.removed, {
        shape: "triangle-down",
        colour: COLOURS.removed,
      }),
      marks(calls, "with", "compacted by the policy", (call) => call.compacted, {
        shape: "square",
        colour: COLOURS.removed,
      }),
      ...Object.entries(NEW_LISTS).map(([why, what]) =>
        marks(calls, "without", `the recording ${what}`, (call) => call.anew === why, {
          shape: SHAPE_OF[why],
          colour: COLOURS.anew,
          isOpen: true,
        }),
      ),
    ],
    x: { title: "call of a model", format: whole, least: 1 },
    y: { title: "tokens", format: short, least: 1 },
    targets: calls.map((call, i) => ({ x: i + 1, text: callText(call, i + 1) })),
    table: callTable(calls),
  });
}

const SHAPE_OF = { compaction: "square", rewind: "triangle-left", change: "diamond" };

// A call, with what was done before it.
function callText(call, number) {
  const told = [
    `call ${number}: ${whole(call.without)} tokens without the policy, ${whole(call.with)} with it`,
  ];
  if (call.removed) told.push(`${counted(call.removed, "item")} removed`);
  if (call.compacted) told.push("compacted");
  if (call.anew) told.push(`the recording ${NEW_LISTS[call.anew]}`);
  return told.join(", ");
}

// A mark on the line of `key` at each call before which something was done.
function marks(calls, key, name, isDone, look) {
  const points = calls.flatMap((call, i) => (isDone(call) ? [[i + 1, call[key]]] : []));
  return { name, points, size: 12, ...look };
}

function callTable(calls) {
  const rows = calls.map((call, i) => ({ ...call, number: i + 1 }));
  const numeric = (title, of) => ({ title, of, numeric: true });
  return {
    name: "Calls of a model",
    rowNames: ["call", "calls"],
    rows,
    columns: [
      numeric("Call", (row) => row.number),
      numeric("Without", (row) => row.without),
      numeric("With", (row) => row.with),
      numeric("From cache without", (row) => row.cached_without),
      numeric("From cache with", (row) => row.cached_with),
      numeric("Removed", (row) => row.removed),
      { title: "Compacted", of: (row) => (row.compacted ? "yes" : "") },
      { title: "New list", of: (row) => (row.anew ? `it ${NEW_LISTS[row.anew]}` : "") },
      { title: "Model", of: (row) => row.model || "" },
    ],
  };
}
