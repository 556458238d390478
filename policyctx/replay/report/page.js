// The page: which session is shown, and the sections that show it.

const ALL = "all";

async function startPage() {
  const report = valuesOf("overview");
  report.sessions.forEach((session, number) => Object.assign(session, { number }));
  await showAnswer(report);
  showKnown(report);
  if (!report.sessions.length) {
    document.getElementById("picker").remove();
    return;
  }
  const select = picker(report, (chosen) => showChosen(report, chosen));
  report.pick = (number) => {
    select.value = String(number);
    return showChosen(report, select.value);
  };
  await showChosen(report, select.value);
}

function picker(report, onPick) {
  const option = (value, text, title) => element("option", { value, title }, text);
  const select = element("select", {
    id: "session",
    autocomplete: "off",
    onchange: () => onPick(select.value),
  });
  if (report.sessions.length !== 1)
    select.append(option(ALL, `All ${whole(report.sessions.length)} sessions`));
  for (const one of report.sessions) {
    const day = one.day ? `${dayText(one.day)}: ` : "";
    const saved =
      one.net.dollars === null
        ? change(one.tokens_without, one.tokens_with)
        : signedDollars(one.net.dollars);
    const text = `${day}${one.title} (${counted(one.calls, "call")}, ${saved})`;
    select.append(option(one.number, text, one.name));
  }
  const form = document.getElementById("picker");
  form.append(element("label", {}, "Details of", select));
  form.addEventListener("submit", (event) => event.preventDefault());
  return select;
}

let lastChosen = null;

// Draws what was chosen, and returns the messages that are shown, if any are.
async function showChosen(report, chosen) {
  lastChosen = chosen;
  await readRows(tablesOf(report, chosen));
  // Something else was chosen while this was read.
  if (lastChosen !== chosen) return null;
  const main = document.getElementById("main");
  const shown =
    chosen === ALL ? allSections(report) : sessionSections(report, report.sessions[chosen]);
  main.replaceChildren(...shown.sections.filter(Boolean));
  return shown.messages;
}

function tablesOf(report, chosen) {
  return chosen === ALL
    ? report.sessions.map(({ number }) => `decisions-${number}`)
    : ["calls", "decisions", "said"].map((kind) => `${kind}-${chosen}`);
}

function allSections(report) {
  const { total, sessions } = report;
  const context = { withSession: true, onShow: (row) => showMessage(report, row) };
  const decisions = sessions.flatMap((session) => decisionsOf(session));
  return {
    sections: [
      section("All sessions", figureList(figuresOf(total)), arrows(), told(total)),
      total.priced_sessions ? section("Net cost by session", netChart(sessions)) : "",
      section(
        "Sessions",
        sessionTable(sessions, {
          isPriced: report.is_priced,
          onPick: (number) => pickAndGo(report, number),
        }),
      ),
      section("Tokens sent", sessionsChart(sessions)),
      auditSection(sessions, (number) => pickAndGo(report, number)),
      ...sharedSections(total, decisions, context),
    ],
    messages: null,
  };
}

function sessionSections(report, session) {
  const calls = rowsOf(`calls-${session.number}`);
  const decisions = decisionsOf(session);
  const messages = new MessageList(rowsOf(`said-${session.number}`), decisions, calls);
  const context = { withSession: false, onShow: (row) => messages.show(row.part, row.position) };
  const day = session.day ? `${dayText(session.day)}, ` : "";
  return {
    sections: [
      section(
        element("bdi", {}, session.title),
        element("p", { class: "muted" }, `${day}${session.format}, ${session.path}`),
        figureList([...netCard(session), ...figuresOf(session)]),
        arrows(),
        told(session),
      ),
      report.sessions.length === 1 // its chart is the first on the page
        ? ""
        : section(
            "Context over turns",
            calls.length ? contextChart(calls) : "No model was called.",
          ),
      auditSection([session]),
      ...sharedSections(session, decisions, context),
      section("Messages", messages.element),
    ],
    messages,
  };
}

function sharedSections(figures, decisions, context) {
  const regrets = regretsOf(decisions);
  const share =
    `${counted(figures.regretted_items, "removed item was", "removed items were")} needed again,` +
    ` ${whole(figures.regretted_tokens)} tokens of these must be read again,` +
    ` of ${whole(figures.removed_tokens)} removed.`;
  return [
    section("Tokens by item type", typesChart(figures.types)),
    section("Cost", costChart(figures)),
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

async function pickAndGo(report, number) {
  const messages = await report.pick(number);
  const main = document.getElementById("main");
  main.focus();
  main.scrollIntoView({ block: "start" });
  return messages;
}

async function showMessage(report, { session, part, position }) {
  const messages = await report.pick(session.number);
  messages?.show(part, position);
}

// What the answer says of all sessions, for one.
function netCard({ net, regretted_items: regretted, regretted_tokens: tokens }) {
  const paid = net.without.dollars;
  const cost =
    net.dollars === null
      ? ["Net cost", "not known", "no prices"]
      : [
          "Net cost",
          signedDollars(net.dollars),
          `${signedShare(net.dollars, paid)} of ${dollars(paid)}`,
        ];
  const again = `${short(tokens)} tokens to read again`;
  return [cost, ["Needed again", counted(regretted, "item"), again]];
}

function arrows() {
  return element(
    "p",
    { class: "muted" },
    "Before an arrow: as it was recorded, measured where the calls were billed. After it: with the" +
      " policy, estimated.",
  );
}

function figuresOf(figures) {
  const over = `${whole(figures.over_window_without)} → ${whole(figures.over_window_with)}`;
  return [
    ...sentFigures(figures),
    ["Over the window", over, "calls"],
    ["Removed", counted(figures.removed_items, "item"), `${short(figures.removed_tokens)} tokens`],
    [
      "Compactions",
      whole(figures.compactions),
      `${whole(figures.compactions_of_recordings)} of the recording's own`,
    ],
    ["Saved to", counted(figures.files, "file"), `${short(figures.bytes)} bytes`],
  ];
}

// How often each step fired, and what could not be done or understood.
function told(figures) {
  const steps = namedRows(figures.steps, "step").map(
    (one) =>
      `Step ${one.step} took ${counted(one.items, "item")} before ${counted(one.calls, "call")}.`,
  );
  const time =
    `policyctx took ${figures.seconds.toFixed(2)} s,` +
    ` ${((1000 * figures.seconds) / (figures.calls || 1)).toFixed(2)} ms a call.`;
  const lines = [...steps, ...figures.told, ...untouched(figures), time];
  return element("ul", {}, ...lines.map((text) => element("li", {}, text)));
}

// Why the policy took nothing, the most frequent reason first.
function untouched({ untouched: reasons }) {
  return Object.entries(reasons)
    .sort(([, one], [, other]) => other - one)
    .map(([why, number]) => `Nothing was removed in ${counted(number, "session")}: ${why}.`);
}

startPage();
