// The page: which session is shown, and the sections that show it.

const ALL = "all";

function startPage() {
  const report = valuesOf("overview");
  report.sessions.forEach((session, number) => Object.assign(session, { number }));
  document.getElementById("title").append(`What ${report.policy} would have done`);
  const { total } = report;
  document
    .getElementById("about")
    .append(
      `${counted(report.sessions.length, "session")}, ${counted(total.calls, "call")} of a model,` +
        ` the usage of ${whole(total.calls_with_usage)} of them known; a window of ${windowText(report.windows)} tokens.`,
    );
  if (report.missing.length) {
    const lines = report.missing.map((text) => element("li", {}, text));
    document
      .querySelector("header form")
      .before(element("p", {}, "Not in this report:"), element("ul", {}, ...lines));
  }
  const select = picker(report, (chosen) => showChosen(report, chosen));
  report.pick = (number) => {
    select.value = String(number);
    return showChosen(report, select.value);
  };
  showChosen(report, select.value);
}

function picker(report, onPick) {
  const option = (value, text) => element("option", { value }, text);
  const select = element("select", {
    id: "session",
    autocomplete: "off",
    onchange: () => onPick(select.value),
  });
  if (report.sessions.length !== 1)
    select.append(option(ALL, `All ${whole(report.sessions.length)} sessions`));
  for (const one of report.sessions) {
    const saved = change(one.without.tokens, one.with.tokens);
    select.append(option(one.number, `${one.name}: ${counted(one.calls, "call")}, ${saved}`));
  }
  const form = document.getElementById("picker");
  form.append(element("label", {}, "Session", select));
  form.addEventListener("submit", (event) => event.preventDefault());
  return select;
}

// Draws what was chosen, and returns the messages that are shown, if any are.
function showChosen(report, chosen) {
  const main = document.getElementById("main");
  clearCharts(main);
  const shown =
    chosen === ALL ? allSections(report) : sessionSections(report, report.sessions[chosen]);
  main.replaceChildren(...shown.sections);
  drawCharts(main);
  return shown.messages;
}

function allSections(report) {
  const { total, sessions } = report;
  const context = { withSession: true, onShow: (row) => showMessage(report, row) };
  const decisions = sessions.flatMap((session) => decisionsOf(session));
  return {
    sections: [
      section("All sessions", figuresOf(total), told(total)),
      section(
        "Sessions",
        sessionTable(sessions, {
          isPriced: report.is_priced,
          onPick: (number) => pickAndGo(report, number),
        }),
      ),
      section("Tokens sent", sessionsChart(sessions)),
      ...sharedSections(total, decisions, context),
    ],
    messages: null,
  };
}

function sessionSections(report, session) {
  const calls = rowsOf(`calls-${session.number}`);
  const decisions = decisionsOf(session);
  const messages = new MessageList(rowsOf(`said-${session.number}`), decisions, calls.length);
  const context = { withSession: false, onShow: (row) => messages.show(row.part, row.position) };
  return {
    sections: [
      section(
        session.name,
        element("p", { class: "muted" }, `${session.format}, ${session.path}`),
        figuresOf(session),
        told(session),
      ),
      section(
        "Context over turns",
        calls.length ? contextChart(calls) : "No model was called.",
      ),
      ...sharedSections(session, decisions, context),
      section("Messages", messages.element),
    ],
    messages,
  };
}

function sharedSections(figures, decisions, context) {
  const regrets = regretsOf(decisions);
  const share =
    `${counted(figures.regretted, "removed item was", "removed items were")} needed again,` +
    ` ${whole(figures.regretted_tokens)} of ${whole(figures.removed_tokens)} removed tokens.`;
  return [
    section("Tokens by item type", typesChart(figures.types)),
    section("Cost", costChart(figures.cost_without, figures.cost_with, figures.check)),
    section(
      "Regret",
      element("p", {}, share),
      regrets.length ? regretTable(regrets, context) : null,
    ),
    section(
      "Decisions",
      element("p", {}, decisionSentence(decisions)),
      decisions.length ? decisionTable(decisions, context) : null,
    ),
  ];
}

function decisionsOf(session) {
  const decisions = rowsOf(`decisions-${session.number}`);
  for (const decision of decisions) decision.session = session;
  return decisions;
}

// One line an item, by the decision that took it first.
function regretsOf(decisions) {
  const first = new Map();
  for (const one of decisions) {
    const key = `${one.session.number} ${one.part} ${one.position}`;
    if (one.needs.length && !first.has(key)) first.set(key, one);
  }
  return [...first.values()];
}

function pickAndGo(report, number) {
  const messages = report.pick(number);
  const main = document.getElementById("main");
  main.focus();
  main.scrollIntoView({ block: "start" });
  return messages;
}

function showMessage(report, row) {
  report.pick(row.session.number).show(row.part, row.position);
}

function figuresOf(figures) {
  const { without, with: edited } = figures;
  return figureList([
    [
      "Tokens sent",
      `${short(without.tokens)} → ${short(edited.tokens)}`,
      change(without.tokens, edited.tokens),
    ],
    [
      "Largest context",
      `${short(without.largest)} → ${short(edited.largest)}`,
      change(without.largest, edited.largest),
    ],
    ["Over the window", `${whole(without.over_window)} → ${whole(edited.over_window)}`, "calls"],
    ["Removed", counted(figures.removed, "item"), `${short(figures.removed_tokens)} tokens`],
    [
      "Needed again",
      counted(figures.regretted, "item"),
      `${short(figures.regretted_tokens)} tokens`,
    ],
    ["Saved to", counted(figures.files, "file"), `${short(figures.bytes)} bytes`],
    [
      "Compactions",
      whole(figures.compactions),
      `${whole(figures.begun_anew)} of the recording's own`,
    ],
    [
      "Time in policyctx",
      `${figures.seconds.toFixed(2)} s`,
      `${((1000 * figures.seconds) / (figures.calls || 1)).toFixed(2)} ms a call`,
    ],
  ]);
}

// How often each step fired, and what could not be done or understood.
function told(figures) {
  const steps = figures.steps.map(
    (one) =>
      `Step ${one.step} took ${counted(one.items, "item")} before ${counted(one.calls, "call")}.`,
  );
  return element("ul", {}, ...[...steps, ...figures.told].map((text) => element("li", {}, text)));
}

startPage();
