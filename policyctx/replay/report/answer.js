// The answer, first on the page: what the policy is worth, where it loses, what it missed, and what
// to change. The sentence says that the figures are estimated.

// With the sign of `part`, so that it reads as the dollars do.
function signedShare(part, of) {
  return of ? change(of, of + part) : "";
}

function headline(report) {
  const { policy, total } = report;
  if (!report.sessions.length) return `${policy}: no session was replayed`;
  const { net } = total;
  if (!total.removed_items) return `${policy} removed nothing`;
  if (net.dollars === null) {
    const [before, after] = [total.tokens_without, total.tokens_with];
    if (before === after) return `${policy} sends as many tokens as before`;
    const share = change(before, after).replace(/^[−+]/, "");
    return `${policy} sends ${share} ${after < before ? "fewer" : "more"} tokens`;
  }
  const size = Math.abs(net.dollars);
  const share = signedShare(net.dollars, net.without.dollars).replace("−", "").replace(" ", "\u00a0");
  if (size < CENT) return `${policy} saves nothing and costs nothing`;
  return `${policy} ${net.dollars < 0 ? "saves" : "costs"} ${dollars(size)}${net.dollars < 0 ? "" : " more"} (${share})`;
}

function lead(report) {
  const { total } = report;
  const { net } = total;
  if (!report.sessions.length) return [];
  if (net.dollars === null) {
    return [
      "In dollars nothing is known: there are no prices for ",
      `${unpriced(total)}. Set model.price in the policy. `,
      howKnown(ESTIMATED),
    ];
  }
  const left = report.sessions.length - total.priced_sessions;
  const sentence =
    `Net over ${counted(total.priced_sessions, "session")}: ${dollars(net.without.dollars)} without the` +
    ` policy, ${dollars(withPolicy(net))} with it, summary calls and re-reads included. `;
  const rest = left
    ? ` ${counted(left, "session has", "sessions have")} no prices and ${left === 1 ? "is" : "are"} not in it (${unpriced(total)}).`
    : "";
  return [sentence, howKnown(ESTIMATED), rest];
}

// A line of the net: prompts, and the output of calls that the recording does not have.
const paidFor = (line) => line.dollars + line.output_dollars;

// What all of it costs with the policy: the recorded calls, the summaries and the re-reads.
function withPolicy(net) {
  return [net.with, net.summaries, net.re_reads].map(paidFor).reduce((a, b) => a + b);
}

const unpriced = (total) => Object.keys(total.calls_without_prices).sort().join(", ");

function kicker(report) {
  const days = report.sessions.map((one) => one.day).filter(Boolean).sort();
  const [first, last] = [days[0], days[days.length - 1]];
  const when = first ? `, ${first === last ? dayText(first) : `${dayText(first)} to ${dayText(last)}`}` : "";
  return `What ${report.policy} would have done: ${counted(report.sessions.length, "session")}, ${counted(report.total.calls, "call")} of a model${when}`;
}

function sentFigures(figures) {
  const arrow = (title, before, after) => [
    title,
    `${short(before)} → ${short(after)}`,
    change(before, after),
  ];
  return [
    arrow("Tokens sent", figures.tokens_without, figures.tokens_with),
    arrow("Largest context", figures.largest_without, figures.largest_with),
  ];
}

function answerCards(report) {
  const { total } = report;
  const { net, baselines } = total;
  const cards = [];
  if (net.dollars !== null) {
    const paid = net.without.dollars;
    cards.push([
      "Net cost",
      signedDollars(net.dollars),
      `${signedShare(net.dollars, paid)} of ${dollars(paid)}`,
    ]);
    cards.push([
      "Sessions that got dearer",
      `${whole(total.dearer_sessions)} of ${whole(total.priced_sessions)}`,
      `in ${whole(total.sessions_never_acted)} the policy never acted`,
    ]);
  } else {
    cards.push(...sentFigures(total));
  }
  const reread = net.dollars === null ? "" : `, ${dollars(paidFor(net.re_reads))}`;
  cards.push([
    "Removed items needed again",
    `${whole(total.regretted_items)} of ${whole(total.removed_items)}`,
    `${short(total.regretted_tokens)} tokens to read again${reread}`,
  ]);
  for (const [name, one] of Object.entries(baselines)) {
    if (one.net.dollars === null) continue;
    const note = `the policy's summaries alone; dearer in ${whole(one.dearer_sessions)}`;
    cards.push([`For comparison: ${name}`, signedDollars(one.net.dollars), note]);
  }
  return figureList(cards);
}

function dearerList(report) {
  const items = report.answer.dearer.map((one) => {
    const session = report.sessions[one.session];
    const parts = [
      ["prompts", one.prompts],
      ["summaries", one.summaries],
      ["re-reads", one.re_reads],
    ].filter(([, paid]) => Math.abs(paid) >= CENT / 2);
    return element(
      "li",
      {},
      element("strong", {}, `${signedDollars(one.net)} (${signedShare(one.share, 1)}) `),
      sessionButton(report, session),
      element(
        "div",
        { class: "muted" },
        `${counted(session.calls, "call")}: ${parts.map(([name, paid]) => `${name} ${signedDollars(paid)}`).join(", ")}`,
      ),
    );
  });
  const more = report.total.dearer_sessions - items.length;
  return answerBlock("Sessions that got dearer", items, {
    none: report.total.priced_sessions ? "None." : "Not known without prices.",
    more: more > 0 ? `${whole(more)} more in the table of sessions.` : "",
  });
}

function missedList(report) {
  const items = report.answer.missed.map((one) => {
    const session = report.sessions[one.session];
    const label = `Show the item of ${one.what} that was needed again`;
    const onclick = () => showMessage(report, { ...one, session });
    return element(
      "li",
      {},
      element("strong", {}, `${counted(one.tokens, "token")} `),
      "of ",
      element("button", { type: "button", class: "inline", "aria-label": label, onclick }, one.what),
      `, ${one.kind} in call ${one.needed}:`,
      element("code", { class: "found", dir: "auto" }, one.found),
      element(
        "div",
        { class: "muted" },
        `Left before call ${one.left} by step ${one.step}`,
        ...(report.sessions.length > 1
          ? [", in ", element("bdi", { title: session.name }, session.title)]
          : []),
      ),
    );
  });
  const more = report.total.regretted_items - items.length;
  return answerBlock("Worst regrets", items, {
    none: report.total.removed_items
      ? "Nothing that was removed was needed again."
      : "The policy removed nothing.",
    more: more > 0 ? `${whole(more)} more below, under Regret.` : "",
  });
}

function adviceList(report) {
  const items = report.answer.advice.map((one) =>
    element(
      "li",
      {},
      one.dollars === null ? null : element("strong", {}, `${dollars(one.dollars)} `),
      ...withCode(one.sentence),
    ),
  );
  return answerBlock("What to change in the policy", items, {
    none: "The figures of these sessions ask for no change.",
    more: "policyctx tune tries changes of a policy on recordings, and tests them on others.",
  });
}

// What is between backticks is code.
function withCode(sentence) {
  return sentence
    .split("`")
    .map((piece, i) => (i % 2 ? element("code", {}, piece) : piece));
}

function answerBlock(title, items, { none, more }) {
  return element(
    "section",
    { class: "answer" },
    element("h2", {}, title),
    items.length ? element("ol", {}, ...items) : element("p", {}, none),
    more ? element("p", { class: "muted" }, more) : null,
  );
}

function sessionButton(report, session) {
  const day = session.day ? ` (${dayText(session.day)})` : "";
  return element(
    "button",
    {
      type: "button",
      class: "inline",
      title: session.name,
      onclick: () => pickAndGo(report, session.number),
    },
    element("bdi", {}, session.title),
    day,
  );
}

async function showAnswer(report) {
  document.getElementById("kicker").append(kicker(report));
  document.getElementById("title").append(headline(report));
  document.getElementById("about").append(...lead(report));
  if (!report.sessions.length) return;
  const most = report.sessions.reduce((a, b) => (b.removed_tokens > a.removed_tokens ? b : a));
  await readRows([`calls-${most.number}`]);
  const answer = document.getElementById("answer");
  answer.append(
    answerCards(report),
    firstChart(report, most),
    report.answer.dearer.length
      ? element("div", { class: "answers" }, dearerList(report), missedList(report))
      : missedList(report),
    adviceList(report),
  );
}

// The session in which the policy removed most, call by call.
function firstChart(report, most) {
  const calls = rowsOf(`calls-${most.number}`);
  const of = report.sessions.length === 1 ? [] : [": ", element("bdi", {}, most.title)];
  const heading = element("span", {}, "Context over turns", ...of);
  return section(heading, calls.length ? contextChart(calls) : "No model was called.");
}

// Last on the page: how each figure is known, and what is not in the report.
function showKnown(report) {
  const { total } = report;
  const sections = [];
  const checks = namedRows(total.checks, "format");
  if (report.sessions.length) {
    const rows = knownRows(total).map(([what, value, word, how]) =>
      element(
        "div",
        {},
        element("dt", {}, what, " ", howKnown(word)),
        element("dd", {}, element("strong", {}, value), element("p", { class: "muted" }, how)),
      ),
    );
    sections.push(
      section(
        "How these figures are known",
        element(
          "p",
          {},
          "The recorded reply always follows, whatever the policy removed before it: what the agent" +
            " would have done otherwise is not known.",
        ),
        element("dl", { class: "knowns" }, ...rows),
        ...(checks.length ? forecast(checks) : []),
      ),
    );
  }
  if (report.missing.length) {
    const lines = report.missing.map((text) => element("li", {}, text));
    const list = element("ul", {}, ...lines);
    const heading = counted(report.missing.length, "note on what was left out", "notes on what was left out");
    const folded = element("details", {}, element("summary", {}, heading), list);
    folded.open = report.missing.length <= FEW_LINES;
    sections.push(section("Not in this report", folded));
  }
  document.getElementById("known").append(...sections);
}

// More are folded.
const FEW_LINES = 5;

function knownRows(total) {
  const rows = [
    [
      "Tokens without the policy",
      short(total.tokens_without),
      total.calls_with_usage === total.calls ? MEASURED : ESTIMATED,
      `Billed by the provider in ${whole(total.calls_with_usage)} of ${counted(total.calls, "call")}; the others are counted.`,
    ],
    [
      "Tokens with the policy",
      short(total.tokens_with),
      ESTIMATED,
      "What was billed, less what the policy took out, at the scale that the bills show.",
    ],
  ];
  if (total.billed_dollars !== null) {
    rows.push([
      "Billed",
      dollars(total.billed_dollars),
      MEASURED,
      `The recorded usage at the price of each call, output included, of ${counted(total.priced_sessions, "session")} with prices.`,
    ]);
    rows.push([
      "Cost without the policy",
      dollars(total.net.without.dollars),
      ESTIMATED,
      "Input alone, by a simulation of the prompt cache; below it is held against the bills.",
    ]);
    rows.push([
      "Cost with the policy",
      dollars(withPolicy(total.net)),
      ESTIMATED,
      "By the same simulation, so most of its errors are in both; summary calls and re-reads are added.",
    ]);
  }
  rows.push([
    "Needed again",
    counted(total.regretted_items, "item"),
    ESTIMATED,
    "Found by comparing what the agent wrote with what had been removed; no model was asked.",
  ]);
  return rows;
}

function forecast(checks) {
  return [
    element("h3", {}, "Forecast against the bills"),
    element(
      "p",
      { class: "muted" },
      "Without the policy: tokens of prompts that were billed otherwise than foreseen, and what" +
        " that is of the billed dollars. Unknown tokens may have been cached by other sessions.",
    ),
    forecastTable(checks),
  ];
}

// How far the cost without the policy is from the bill of each call.
function forecastTable(checks) {
  const tokens = (title, of) => ({ title, of, show: (row) => short(of(row)), numeric: true });
  return new DataTable({
    name: "Forecast against the bills",
    rowNames: ["format", "formats"],
    rows: checks,
    hasFinder: false,
    columns: [
      { title: "Format", of: (row) => row.format, words: true },
      { title: "Calls", of: (row) => row.calls, numeric: true },
      tokens("Tokens", (row) => row.tokens),
      tokens("Billed otherwise", (row) => row.tokens_off),
      {
        title: "Of the $",
        of: (row) => (row.error === null ? -1 : row.error),
        show: (row) => (row.error === null ? "–" : `${(100 * row.error).toFixed(1)} %`),
        numeric: true,
      },
      tokens("Unknown", (row) => row.tokens_unknown),
    ],
  }).element;
}
