// The charts of sums: tokens by session and by item type, and what they cost.

function sessionsChart(sessions) {
  const most = [...sessions]
    .sort((one, other) => other.without.tokens - one.without.tokens)
    .slice(0, 12);
  const drawn = most.reverse();
  const names = drawn.map((session) => plain(shortName(session.name, NARROW.matches ? 14 : 28)));
  const bar = (name, key, color) => ({
    type: "bar",
    orientation: "h",
    name,
    x: drawn.map((session) => session[key].tokens),
    y: drawn.map((_, i) => i),
    marker: { color },
    hovertemplate: `%{x:,} tokens ${name}<extra></extra>`,
  });
  const sum = (key) => sessions.reduce((total, session) => total + session[key].tokens, 0);
  const shown =
    most.length < sessions.length ? ` Drawn are the ${most.length} that sent the most.` : "";
  return chart({
    name: "Tokens sent, by session",
    sentence:
      `${counted(sessions.length, "session")} sent ${short(sum("without"))} tokens in all;` +
      ` with the policy ${short(sum("with"))} (${change(sum("without"), sum("with"))}).${shown}`,
    traces: [
      bar("with the policy", "with", COLOURS.with),
      bar("without", "without", COLOURS.without),
    ],
    layout: {
      height: 120 + 36 * drawn.length,
      bargap: 0.3,
      legend: { orientation: "h", y: 1.01, yanchor: "bottom", x: 0, traceorder: "reversed" },
      xaxis: axis("tokens", { tickformat: "~s" }),
      yaxis: axis("", { tickvals: drawn.map((_, i) => i), ticktext: names }),
    },
    table: {
      name: "Tokens sent, by session",
      rowNames: ["session", "sessions"],
      rows: sessions,
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
  const drawn = [...types]
    .filter((one) => one.tokens)
    .sort((one, other) => one.tokens - other.tokens);
  const bar = (name, of, marker) => ({
    type: "bar",
    orientation: "h",
    name,
    x: drawn.map(of),
    y: drawn.map((_, i) => i),
    marker,
    hovertemplate: `%{x:,} tokens ${name}<extra></extra>`,
  });
  const heaviest = drawn[drawn.length - 1];
  const freed = drawn.reduce((sum, one) => sum + one.freed, 0);
  const all = drawn.reduce((sum, one) => sum + one.tokens, 0);
  const most = heaviest
    ? ` The heaviest type is ${heaviest.type} with ${whole(heaviest.tokens)}.`
    : "";
  return chart({
    name: "Tokens by item type",
    sentence:
      `The items of all lists, each counted once, have ${whole(all)} tokens by the policy's own` +
      ` tokenizer; the policy freed ${whole(freed)} of them.${most}`,
    traces: [
      bar("stayed", (one) => one.tokens - one.freed, { color: COLOURS.with }),
      bar("freed", (one) => one.freed, {
        color: COLOURS.removed,
        pattern: { shape: HATCHED, size: 6, solidity: 0.35 },
      }),
    ],
    layout: {
      height: 110 + 34 * drawn.length,
      barmode: "relative",
      bargap: 0.35,
      xaxis: axis("tokens", { tickformat: "~s" }),
      yaxis: axis("", {
        tickvals: drawn.map((_, i) => i),
        ticktext: drawn.map((one) => plain(one.type)),
      }),
    },
    table: {
      name: "Tokens by item type",
      rowNames: ["type", "types"],
      rows: types,
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

// Told apart by their patterns as well as by their colours.
const COST_KINDS = [
  ["cache_read", "read from the cache", COLOURS.with, ""],
  ["cache_write", "written to the cache", COLOURS.removed, HATCHED],
  ["input", "not cached", COLOURS.anew, "x"],
  ["output", "output", COLOURS.without, "."],
];

function sumOf(cost) {
  if (!cost.dollars) return null;
  return Object.values(cost.dollars).reduce((one, other) => one + other, 0);
}

function costSentence(before, after, check) {
  const read = (cost) => short(cost.tokens.cache_read);
  const rest = (cost) => short(cost.tokens.cache_write + cost.tokens.input);
  const told = [
    `Read from the prompt cache: ${read(before)} → ${read(after)} tokens;` +
      ` not from it: ${rest(before)} → ${rest(after)}.`,
  ];
  if (before.dollars) {
    const [paid, wouldBe] = [sumOf(before), sumOf(after)];
    told.unshift(`${dollars(paid)} → ${dollars(wouldBe)} (${change(paid, wouldBe)}).`);
  } else {
    told.push("There are no $: the prices of the language models are not known.");
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
  const traces = kinds.map(([kind, name, color, shape]) => ({
    type: "bar",
    orientation: "h",
    name,
    x: [after[unit][kind], before[unit][kind]],
    y: ["with", "without"],
    marker: { color, pattern: { shape, size: 6, solidity: 0.3 } },
    hovertemplate: `${format} ${name}<extra></extra>`,
  }));
  return chart({
    name: "Cost under the prompt cache",
    sentence: costSentence(before, after, check),
    traces,
    layout: {
      height: 230,
      barmode: "stack",
      bargap: 0.35,
      xaxis: before.dollars
        ? axis("$", { tickformat: "$~s" })
        : axis("tokens of all prompts", { tickformat: "~s" }),
      yaxis: axis(""),
    },
    table: costTable(before, after),
  });
}

function costTable(before, after) {
  const rows = COST_KINDS.map(([kind, name]) => ({ kind, name }));
  const columns = [{ title: "Kind", of: (row) => row.name }];
  for (const [title, cost] of [
    ["without", before],
    ["with", after],
  ]) {
    columns.push({ title: `Tokens ${title}`, of: (row) => cost.tokens[row.kind], numeric: true });
    if (cost.dollars) {
      const paid = (row) => cost.dollars[row.kind];
      columns.push({
        title: `$ ${title}`,
        of: paid,
        show: (row) => dollars(paid(row)),
        numeric: true,
      });
    }
  }
  return { name: "Cost under the prompt cache", rowNames: ["kind", "kinds"], rows, columns };
}
