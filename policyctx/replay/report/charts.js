// The charts, each a figure with a sentence, a drawing, and the same figures as a table.

// They stand out from a light page as well as from a dark one.
const COLOURS = { without: "#7b8794", with: "#2f7de1", window: "#d9483b", removed: "#c27212", rest: ["#2f7de1", "#c27212", "#9b5fd0", "#7b8794"] };
const HATCHED = "/";

// The library reads a little markup in its labels; what a session holds is none.
function plain(text) {
  return String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
}

function axis(title, more) {
  return { title: { text: title, standoff: 8 }, fixedrange: true, automargin: true, zeroline: false, ...more };
}

function layoutOf(more) {
  return {
    autosize: true,
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: "system-ui, sans-serif", size: 13 },
    margin: { l: 8, r: 12, t: 8, b: 8 },
    legend: { orientation: "h", y: 1.02, yanchor: "bottom", x: 0, traceorder: "normal" },
    dragmode: false,
    ...more,
  };
}

// Returns a figure; it is drawn when it stands in the page, since only there it has a width.
function chart({ name, sentence, traces, layout, table }) {
  const drawing = element("div", { class: "chart", role: "img", "aria-label": `${name}. ${sentence}` });
  drawing.draw = () =>
    Plotly.newPlot(drawing, traces, layoutOf(layout), { displayModeBar: false, responsive: true });
  const figures = element("details", {}, element("summary", {}, `${name}: the figures`));
  figures.addEventListener("toggle", () => {
    if (figures.open && figures.children.length === 1) figures.append(new DataTable(table).element);
  });
  return element("figure", { "aria-label": name }, element("figcaption", {}, sentence), drawing, figures);
}

// Until the library has been read there is nothing to draw with; it calls this when it is there.
function drawCharts(root) {
  if (!("Plotly" in window)) return;
  for (const drawing of root.querySelectorAll(".chart")) drawing.draw();
  // The library measures texts in a drawing outside of what is seen.
  document.getElementById("js-plotly-tester")?.setAttribute("aria-hidden", "true");
}

function clearCharts(root) {
  if (!("Plotly" in window)) return;
  for (const drawing of root.querySelectorAll(".chart")) Plotly.purge(drawing);
}

// A drawing keeps its width when the page is put on paper, which is narrower than most screens.
const PAPER_WIDTH = 660;

window.addEventListener("beforeprint", () => resizeCharts({ autosize: false, width: PAPER_WIDTH }));
window.addEventListener("afterprint", () => resizeCharts({ autosize: true, width: null }));

function resizeCharts(size) {
  for (const drawing of document.querySelectorAll(".chart.js-plotly-plot")) Plotly.relayout(drawing, size);
}

function contextSentence(calls, window) {
  const largest = (key) => Math.max(...calls.map((call) => call[key]));
  const over = (key) => calls.filter((call) => call[key] > window).length;
  const told = [
    `The largest of ${counted(calls.length, "context")} has ${whole(largest("without"))} tokens` +
      ` without the policy and ${whole(largest("with"))} with it;` +
      ` the window holds ${whole(window)}.`,
  ];
  if (over("without")) {
    told.push(`Over the window: ${whole(over("without"))} → ${counted(over("with"), "call")}.`);
  }
  const times = calls.filter((call) => call.removed).length;
  const compacted = calls.filter((call) => call.compacted).length;
  if (times) told.push(`Before ${counted(times, "call")} the policy removed something.`);
  if (compacted) told.push(`Before ${counted(compacted, "call")} the policy replaced history by a summary.`);
  if (!times && !compacted) told.push("The policy removed nothing.");
  const anew = calls.filter((call) => call.anew).length;
  if (anew) told.push(`${counted(anew, "time")} the recording began its list anew, as at a compaction of its own.`);
  return told.join(" ");
}

function contextChart(calls, window) {
  const numbers = calls.map((_, i) => i + 1);
  const removed = numbers.filter((number) => calls[number - 1].removed);
  const anew = numbers.filter((number) => calls[number - 1].anew);
  const line = (key, name, more) => ({
    x: numbers, y: calls.map((call) => call[key]), name, type: "scatter", mode: "lines", ...more,
    hovertemplate: "%{y:,} tokens",
  });
  const traces = [
    line("without", "without the policy", { line: { color: COLOURS.without, width: 2, dash: "dot" } }),
    line("with", "with the policy", { line: { color: COLOURS.with, width: 2.5 } }),
    {
      x: [1, Math.max(2, calls.length)], y: [window, window], name: "window", type: "scatter", mode: "lines",
      line: { color: COLOURS.window, width: 1.5, dash: "dash" }, hoverinfo: "skip",
    },
    {
      x: removed, y: removed.map((number) => calls[number - 1].with), name: "the policy removed items",
      type: "scatter", mode: "markers", marker: { symbol: "triangle-down", size: 9, color: COLOURS.removed },
      customdata: removed.map((number) => calls[number - 1].removed), hovertemplate: "%{customdata:,} items removed<extra></extra>",
    },
  ];
  const compacted = numbers.filter((number) => calls[number - 1].compacted);
  if (compacted.length) {
    traces.push({
      x: compacted, y: compacted.map((number) => calls[number - 1].with), name: "compacted by the policy",
      type: "scatter", mode: "markers", marker: { symbol: "square", size: 10, color: COLOURS.removed },
      hovertemplate: "history replaced by a summary<extra></extra>",
    });
  }
  if (anew.length) {
    traces.push({
      x: anew, y: anew.map((number) => calls[number - 1].without), name: "begun anew by the recording",
      type: "scatter", mode: "markers", marker: { symbol: "diamond-open", size: 10, color: COLOURS.rest[2], line: { width: 2 } },
      hovertemplate: "list begun anew<extra></extra>",
    });
  }
  return chart({
    name: "Context over turns",
    sentence: contextSentence(calls, window),
    traces,
    layout: {
      height: 380, hovermode: "x unified",
      xaxis: axis("call of a model"), yaxis: axis("tokens", { rangemode: "tozero", tickformat: "~s" }),
    },
    table: callTable(calls),
  });
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
      { title: "Begun anew", of: (row) => (row.anew ? "yes" : "") },
      { title: "Model", of: (row) => row.model || "" },
    ],
  };
}

function sessionsChart(sessions) {
  const most = [...sessions].sort((one, other) => other.without.tokens - one.without.tokens).slice(0, 12);
  const drawn = most.reverse();
  const names = drawn.map((session) => plain(shortName(session.name, NARROW.matches ? 14 : 28)));
  const bar = (name, key, color) => ({
    type: "bar", orientation: "h", name, x: drawn.map((session) => session[key].tokens),
    y: drawn.map((_, i) => i), marker: { color }, hovertemplate: `%{x:,} tokens ${name}<extra></extra>`,
  });
  const sum = (key) => sessions.reduce((total, session) => total + session[key].tokens, 0);
  const shown = most.length < sessions.length ? ` Drawn are the ${most.length} that sent the most.` : "";
  return chart({
    name: "Tokens sent, by session",
    sentence: `${counted(sessions.length, "session")} sent ${short(sum("without"))} tokens in all;` +
      ` with the policy ${short(sum("with"))} (${change(sum("without"), sum("with"))}).${shown}`,
    traces: [bar("with the policy", "with", COLOURS.with), bar("without", "without", COLOURS.without)],
    layout: {
      height: 120 + 36 * drawn.length, bargap: 0.3, legend: { orientation: "h", y: 1.01, yanchor: "bottom", x: 0, traceorder: "reversed" },
      xaxis: axis("tokens", { tickformat: "~s" }), yaxis: axis("", { tickvals: drawn.map((_, i) => i), ticktext: names }),
    },
    table: {
      name: "Tokens sent, by session", rowNames: ["session", "sessions"], rows: sessions,
      columns: [
        { title: "Session", of: (row) => row.name },
        { title: "Without", of: (row) => row.without.tokens, numeric: true },
        { title: "With", of: (row) => row.with.tokens, numeric: true },
      ],
    },
  });
}

function shortName(name, most) {
  return name.length <= most ? name : `${name.slice(0, most / 2)}…${name.slice(-most / 2)}`;
}

function typesChart(types) {
  const drawn = [...types].filter((one) => one.tokens).sort((one, other) => one.tokens - other.tokens);
  const bar = (name, of, marker) => ({
    type: "bar", orientation: "h", name, x: drawn.map(of), y: drawn.map((_, i) => i), marker,
    hovertemplate: `%{x:,} tokens ${name}<extra></extra>`,
  });
  const heaviest = drawn[drawn.length - 1];
  const freed = drawn.reduce((sum, one) => sum + one.freed, 0);
  const all = drawn.reduce((sum, one) => sum + one.tokens, 0);
  const most = heaviest ? ` The heaviest type is ${heaviest.type} with ${whole(heaviest.tokens)}.` : "";
  return chart({
    name: "Tokens by item type",
    sentence: `The items of all lists, each counted once, have ${whole(all)} tokens; the policy freed ${whole(freed)} of them.${most}`,
    traces: [
      bar("stayed", (one) => one.tokens - one.freed, { color: COLOURS.with }),
      bar("freed", (one) => one.freed, { color: COLOURS.removed, pattern: { shape: HATCHED, size: 6, solidity: 0.35 } }),
    ],
    layout: {
      height: 110 + 34 * drawn.length, barmode: "relative", bargap: 0.35,
      xaxis: axis("tokens", { tickformat: "~s" }),
      yaxis: axis("", { tickvals: drawn.map((_, i) => i), ticktext: drawn.map((one) => plain(one.type)) }),
    },
    table: {
      name: "Tokens by item type", rowNames: ["type", "types"], rows: types,
      columns: [
        { title: "Type", of: (row) => row.type },
        { title: "Items", of: (row) => row.items, numeric: true },
        { title: "Tokens", of: (row) => row.tokens, numeric: true },
        { title: "Removed items", of: (row) => row.removed, numeric: true },
        { title: "Freed tokens", of: (row) => row.freed, numeric: true },
      ],
    },
  });
}

const COST_KINDS = [
  ["cache_read", "read from the cache", ""],
  ["cache_write", "written to the cache", HATCHED],
  ["input", "not cached", "x"],
  ["output", "output", "."],
];

function costSentence(before, after, check) {
  const read = (cost) => short(cost.tokens.cache_read);
  const rest = (cost) => short(cost.tokens.cache_write + cost.tokens.input);
  const told = [
    `Read from the prompt cache: ${read(before)} → ${read(after)} tokens;` +
      ` not from it: ${rest(before)} → ${rest(after)}.`,
  ];
  if (before.dollars) {
    const sum = (cost) => Object.values(cost.dollars).reduce((one, other) => one + other, 0);
    told.unshift(`${dollars(sum(before))} → ${dollars(sum(after))} (${change(sum(before), sum(after))}).`);
  } else {
    told.push("There are no $ without model.price in the policy.");
  }
  if (check) {
    told.push(
      `For the sessions as they were, ${short(check.cached)} cached and ${short(check.uncached)}` +
        ` uncached tokens were foreseen, ${short(check.billed_cached)} and ${short(check.billed_uncached)} billed.`,
    );
  }
  return told.join(" ");
}

function costChart(before, after, check) {
  const unit = before.dollars ? "dollars" : "tokens";
  const format = before.dollars ? "$%{x:,.2f}" : "%{x:,} tokens";
  const kinds = before.dollars ? COST_KINDS : COST_KINDS.slice(0, 3);
  const traces = kinds.map(([kind, name, shape], i) => ({
    type: "bar", orientation: "h", name, x: [after[unit][kind], before[unit][kind]], y: ["with", "without"],
    marker: { color: COLOURS.rest[i], pattern: { shape, size: 6, solidity: 0.3 } }, hovertemplate: `${format} ${name}<extra></extra>`,
  }));
  const rows = COST_KINDS.map(([kind, name]) => ({ kind, name }));
  const columns = [{ title: "Kind", of: (row) => row.name }];
  for (const [title, cost] of [["without", before], ["with", after]]) {
    columns.push({ title: `Tokens ${title}`, of: (row) => cost.tokens[row.kind], numeric: true });
    if (cost.dollars) {
      columns.push({ title: `$ ${title}`, of: (row) => cost.dollars[row.kind], show: (row) => dollars(cost.dollars[row.kind]), numeric: true });
    }
  }
  const axisTitle = before.dollars ? "$" : "tokens of all prompts";
  return chart({
    name: "Cost under the prompt cache",
    sentence: costSentence(before, after, check),
    traces,
    layout: { height: 230, barmode: "stack", bargap: 0.35, xaxis: axis(axisTitle, { tickformat: before.dollars ? "$~s" : "~s" }), yaxis: axis("") },
    table: { name: "Cost under the prompt cache", rowNames: ["kind", "kinds"], rows, columns },
  });
}
