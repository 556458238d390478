// The charts of sums: net and tokens by session, tokens by item type, and what they cost.

// So many sessions are drawn; the table has all.
const MOST_BARS = 12;

const READ = { kind: "cache_read", name: "read from the cache", look: "look-read" };
const WRITTEN = { kind: "cache_write", name: "written to the cache", look: "look-write" };
const PLAIN = { kind: "input", name: "not cached", look: "look-input" };
const SUMMARIES = { kind: "summaries", name: "summary calls", look: "look-summary" };
const RE_READS = { kind: "re_reads", name: "re-reads", look: "look-reread" };

// What each session saves or loses: its prompts, its summaries and its re-reads.
function netChart(sessions) {
  const priced = sessions.filter((one) => one.net.dollars !== null);
  const rows = [...priced].sort((one, other) => other.net.dollars - one.net.dollars);
  const acted = rows.filter((one) => one.removed_items || Math.abs(one.net.dollars) >= CENT / 2);
  const drawn = extremes(acted, MOST_BARS);
  const saving = priced.filter((one) => one.net.dollars <= -CENT / 2);
  const losing = priced.filter((one) => one.net.dollars >= CENT / 2);
  const sum = (those) => Math.abs(those.reduce((all, one) => all + one.net.dollars, 0));
  const left = acted.length - drawn.length;
  const said = [
    [saving, (one) => `${counted(one.length, "session saves", "sessions save")} ${dollars(sum(one))}`],
    [losing, (one) => `${counted(one.length, "session costs", "sessions cost")} ${dollars(sum(one))} more`],
  ].filter(([those]) => those.length);
  const sentence =
    (said.map(([those, words]) => words(those)).join("; ") || "No session saves or costs a cent") +
    "." +
    (left ? ` Drawn are the ${drawn.length} with the largest loss or saving.` : "") +
    (acted.length < priced.length
      ? ` In ${whole(priced.length - acted.length)} nothing was removed.`
      : "");
  return barChart({
    name: "Net cost by session",
    sentence,
    format: signedDollars,
    marksSum: true,
    kinds: [
      { kind: "saved", name: "prompts cost less", look: "look-saved" },
      { kind: "lost", name: "prompts cost more", look: "look-lost" },
      SUMMARIES,
      RE_READS,
    ],
    rows: drawn.map((session) => {
      const prompts = promptChange(session.net);
      return {
        label: labelOf(session),
        value: `${signedDollars(session.net.dollars)} (${signedShare(session.net.dollars, session.net.without.dollars)})`,
        parts: {
          saved: Math.min(0, prompts),
          lost: Math.max(0, prompts),
          summaries: paidFor(session.net.summaries),
          re_reads: paidFor(session.net.re_reads),
        },
      };
    }),
    table: netTable(priced),
  });
}

function promptChange(net) {
  return net.with.dollars - net.without.dollars;
}

// The first and the last of sorted rows, those with the larger size where they are too many.
function extremes(rows, most) {
  if (rows.length <= most) return rows;
  const size = (row) => Math.abs(row.net.dollars);
  const kept = new Set([...rows].sort((one, other) => size(other) - size(one)).slice(0, most));
  return rows.filter((row) => kept.has(row));
}

function netTable(sessions) {
  const paid = (title, of) => ({ title, of, show: (row) => signedDollars(of(row)), numeric: true });
  const plainly = (title, of) => ({ title, of, show: (row) => dollars(of(row)), numeric: true });
  return {
    name: "Net cost by session",
    rowNames: ["session", "sessions"],
    rows: sessions,
    sort: 5,
    descending: true,
    columns: [
      sessionColumn(),
      plainly("Without", (row) => row.net.without.dollars),
      paid("Prompts", (row) => promptChange(row.net)),
      plainly("Summary calls", (row) => paidFor(row.net.summaries)),
      plainly("Re-reads", (row) => paidFor(row.net.re_reads)),
      paid("Net", (row) => row.net.dollars),
    ],
  };
}

function labelOf(session) {
  return session.day ? `${session.title} (${dayText(session.day)})` : session.title;
}

function sessionsChart(sessions) {
  const drawn = [...sessions]
    .sort((one, other) => other.tokens_without - one.tokens_without)
    .slice(0, MOST_BARS);
  const sum = (key) => sessions.reduce((total, session) => total + session[`tokens_${key}`], 0);
  const shown =
    drawn.length < sessions.length ? ` Drawn are the ${drawn.length} that sent the most.` : "";
  const rows = drawn.map((session) => {
    const [before, after] = [session.tokens_without, session.tokens_with];
    return {
      label: labelOf(session),
      value: `${short(before)} → ${short(after)} (${change(before, after)})`,
      parts: {
        sent: Math.min(before, after),
        spared: Math.max(0, before - after),
        added: Math.max(0, after - before),
      },
    };
  });
  return barChart({
    name: "Tokens sent, by session",
    sentence:
      `${counted(sessions.length, "session")} sent ${short(sum("without"))} tokens in all;` +
      ` with the policy ${short(sum("with"))} (${change(sum("without"), sum("with"))}).${shown}`,
    format: (size) => `${whole(size)} tokens`,
    kinds: [
      { kind: "sent", name: "sent with the policy", look: "look-read" },
      { kind: "spared", name: "no longer sent", look: "look-gone" },
      { kind: "added", name: "sent in addition", look: "look-lost" },
    ],
    rows,
    table: {
      name: "Tokens sent, by session",
      rowNames: ["session", "sessions"],
      rows: sessions,
      columns: [
        sessionColumn(),
        { title: "Without", of: (row) => row.tokens_without, numeric: true },
        { title: "With", of: (row) => row.tokens_with, numeric: true },
      ],
    },
  });
}

function typesChart(byType) {
  const types = namedRows(byType, "type");
  const drawn = [...types]
    .filter((one) => one.tokens)
    .sort((one, other) => other.tokens - one.tokens);
  const freed = drawn.reduce((sum, one) => sum + one.freed, 0);
  const all = drawn.reduce((sum, one) => sum + one.tokens, 0);
  const most = drawn.length
    ? ` The heaviest type is ${drawn[0].type} with ${whole(drawn[0].tokens)}.`
    : "";
  return barChart({
    name: "Tokens by item type",
    sentence:
      `The items of all lists, each counted once, have ${whole(all)} tokens by the policy's own` +
      ` tokenizer; the policy freed ${whole(freed)} of them.${most}`,
    format: (size) => `${whole(size)} tokens`,
    kinds: [
      { kind: "stayed", name: "stayed", look: "look-read" },
      { kind: "freed", name: "freed", look: "look-gone" },
    ],
    rows: drawn.map((one) => ({
      label: one.type,
      value: `${short(one.tokens)}${one.freed ? `, ${short(one.freed)} freed` : ""}`,
      parts: { stayed: one.tokens - one.freed, freed: one.freed },
    })),
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

const paidOf = (cost, kind) => cost[`dollars_${kind}`];

// What prompts, summaries and re-reads come to, in the unit of the chart.
function costsOf(figures) {
  const { net, cost_without: before, cost_with: after } = figures;
  const isPriced = net.dollars !== null;
  const kinds = (cost) =>
    Object.fromEntries(
      [READ, WRITTEN, PLAIN].map(({ kind }) => [kind, isPriced ? paidOf(cost, kind) : cost[kind]]),
    );
  const more = (line) => (isPriced ? paidFor(line) : line.tokens);
  return {
    without: kinds(before),
    with: {
      ...kinds(after),
      summaries: more(net.summaries),
      re_reads: more(net.re_reads),
    },
  };
}

const sumOf = (parts) => Object.values(parts).reduce((one, other) => one + other, 0);

function costSentence(figures, without, edited) {
  const { net, cost_without: before } = figures;
  const told = [];
  if (net.dollars === null) {
    told.push(
      `Prompts of ${short(without)} tokens without the policy, ${short(edited)} with it,` +
        ` summary calls and re-reads included (${change(without, edited)}).`,
      "There are no $: the prices of the language models are not known.",
    );
  } else {
    told.push(
      `${dollars(without)} without the policy, ${dollars(edited)} with it: net` +
        ` ${signedDollars(net.dollars)} (${signedShare(net.dollars, net.without.dollars)}).`,
    );
    if (net.output_dollars >= CENT / 2)
      told.push(`The output of summary calls and re-reads is in it, ${dollars(net.output_dollars)}.`);
    if (before.dollars_output)
      told.push(
        `The output of the recorded calls is not: ${dollars(before.dollars_output)} in both cases.`,
      );
  }
  return told.join(" ");
}

function costChart(figures) {
  const costs = costsOf(figures);
  const [without, edited] = [sumOf(costs.without), sumOf(costs.with)];
  const isPriced = figures.net.dollars !== null;
  const format = isPriced ? dollars : (size) => `${whole(size)} tokens`;
  const row = (label, parts) => ({
    label,
    value: isPriced ? dollars(sumOf(parts)) : short(sumOf(parts)),
    parts,
  });
  return barChart({
    name: "Cost under the prompt cache",
    sentence: costSentence(figures, without, edited),
    format,
    kinds: [READ, WRITTEN, PLAIN, SUMMARIES, RE_READS],
    rows: [row("without the policy", costs.without), row("with the policy", costs.with)],
    table: costTable(figures),
  });
}

function costTable(figures) {
  const { net, cost_without: before, cost_with: after } = figures;
  const isPriced = net.dollars !== null;
  const kinds = [READ, WRITTEN, PLAIN].map(({ kind, name }) => ({
    name,
    tokens: [before[kind], after[kind]],
    dollars: isPriced ? [paidOf(before, kind), paidOf(after, kind)] : null,
  }));
  const more = [SUMMARIES, RE_READS].map(({ kind, name }) => ({
    name,
    tokens: [0, net[kind].tokens],
    dollars: isPriced ? [0, paidFor(net[kind])] : null,
  }));
  const rows = [...kinds, ...more];
  const columns = [{ title: "Kind", of: (row) => row.name }];
  for (const [i, title] of ["without", "with"].entries()) {
    columns.push({ title: `Tokens ${title}`, of: (row) => row.tokens[i], numeric: true });
    if (isPriced) {
      const paid = (row) => row.dollars[i];
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
