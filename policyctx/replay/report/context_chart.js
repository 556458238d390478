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

// So few that the axis would be divided into parts of a call.
const FEW_CALLS = 8;

function contextChart(calls) {
  const numbers = calls.map((_, i) => i + 1);
  const line = (key, name, style) => ({
    type: "scatter",
    mode: calls.length > 1 ? "lines" : "markers",
    name,
    x: numbers,
    y: calls.map((call) => call[key]),
    line: style,
    cliponaxis: false,
    customdata: calls.map(key === "with" ? happened : () => ""),
    hovertemplate: "%{y:,} tokens%{customdata}",
  });
  const limit = {
    type: "scatter",
    mode: "lines",
    name: "window",
    x: calls.length > 1 ? numbers : [0.5, 1.5],
    y: calls.length > 1 ? calls.map((call) => call.window) : [calls[0].window, calls[0].window],
    line: { color: COLOURS.window, width: 1.5, dash: "dash", shape: "hv" },
    hoverinfo: "skip",
  };
  const events = [
    marks(calls, "removed", "with", "the policy removed items", "triangle-down", COLOURS.removed),
    marks(calls, "compacted", "with", "compacted by the policy", "square", COLOURS.removed),
    ...Object.entries(NEW_LISTS).map(([why, what]) =>
      marks(
        calls.map((call) => ({ ...call, [why]: call.anew === why })),
        why,
        "without",
        `the recording ${what}`,
        MARKS[why],
        COLOURS.anew,
      ),
    ),
  ];
  return chart({
    name: "Context over turns",
    sentence: contextSentence(calls),
    traces: [
      line("without", "without the policy", { color: COLOURS.without, width: 2, dash: "dot" }),
      line("with", "with the policy", { color: COLOURS.with, width: 2.5 }),
      ...(calls.some((call) => call.without >= call.window * NEAR_WINDOW) ? [limit] : []),
      ...events.filter((trace) => trace.x.length),
    ],
    layout: {
      height: 380,
      hovermode: "x unified",
      xaxis: axis("call of a model", {
        unifiedhovertitle: { text: "call %{x}" },
        ...(calls.length <= FEW_CALLS ? { dtick: 1 } : {}),
      }),
      yaxis: axis("tokens", { rangemode: "tozero", tickformat: "~s" }),
    },
    table: callTable(calls),
  });
}

const MARKS = { compaction: "square-open", rewind: "triangle-left-open", change: "diamond-open" };

// What was done before a call, as its label in the chart says it.
function happened(call) {
  const told = [];
  if (call.removed) told.push(`, ${counted(call.removed, "item")} removed`);
  if (call.compacted) told.push(", compacted");
  if (call.anew) told.push(`, the recording ${NEW_LISTS[call.anew]}`);
  return told.join("");
}

// A mark on the line of `key` at each call before which something of a kind was done.
function marks(calls, kind, key, name, symbol, color) {
  const numbers = calls.map((_, i) => i + 1).filter((number) => calls[number - 1][kind]);
  return {
    type: "scatter",
    mode: "markers",
    name,
    x: numbers,
    y: numbers.map((number) => calls[number - 1][key]),
    marker: { symbol, size: 9, color, line: { width: symbol.endsWith("open") ? 2 : 0 } },
    hoverinfo: "skip",
  };
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
