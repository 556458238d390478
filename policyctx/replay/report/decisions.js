// The tables of what was decided, of what was needed again, and of the sessions.

const FATES = { removed: "Removed", kept: "Kept" };
const isKept = (decision) => decision.action === "keep";

function decisionSentence(decisions) {
  if (!decisions.length) return "No step of the policy selects an item.";
  const removed = decisions.some((one) => !isKept(one))
    ? "For what was removed: before which call, and why."
    : "Nothing was removed.";
  return `${removed} For what stayed: why the last step that could have taken it did not, as of the last call of its list.`;
}

function decisionTable(decisions, { withSession, onShow }) {
  const numeric = (title, of) => ({ title, of, numeric: true });
  const columns = [
    numeric("Before call", (row) => row.call),
    {
      title: "Item",
      of: (row) => row.what,
      search: (row) => `${row.what} ${row.item_type} ${row.item_id}`,
      show: (row) => itemAndType(row, onShow),
    },
    { title: "Action", of: (row) => row.action },
    { title: "Step", of: (row) => row.step, words: true },
    numeric("Tokens", (row) => row.tokens),
    {
      ...numeric("Freed", (row) => row.freed),
      show: (row) => (isKept(row) ? "" : whole(row.freed)),
    },
    {
      title: "Why",
      of: (row) => row.reason,
      search: (row) => `${row.reason} ${placeOf(row)} ${row.rule} ${row.path || ""}`,
      show: reasonAndPlace,
      words: true,
    },
    {
      title: "Needed again",
      of: (row) => row.needs.length && row.needs[0].call,
      show: neededAt,
      search: neededWords,
      numeric: true,
    },
  ];
  if (withSession) {
    columns.unshift(sessionColumn((row) => row.session));
  }
  return new DataTable({
    name: "Decisions",
    rowNames: ["decision", "decisions"],
    // What stayed is most of it, and comes last.
    rows: [...decisions.filter((row) => !isKept(row)), ...decisions.filter(isKept)],
    columns,
    filter: { title: "Show", of: (row) => (isKept(row) ? "kept" : "removed"), names: FATES },
  }).element;
}

function itemButton(row, onShow) {
  const label = `Show the message of ${row.what}, ${row.item_id}`;
  return element(
    "button",
    { type: "button", "aria-label": label, onclick: () => onShow(row) },
    row.what,
  );
}

// Of a tool there are calls and results.
function itemAndType(row, onShow) {
  const type = row.what === row.item_type ? null : row.item_type;
  const muted = type && element("div", { class: "muted type" }, type);
  return element("div", {}, itemButton(row, onShow), muted);
}

function reasonAndPlace(row) {
  return element("div", {}, row.reason, element("div", { class: "muted" }, placeOf(row)));
}

// Which line says so, in the words of `policyctx explain`.
function placeOf(row) {
  return row.place || (row.rule ? `${row.rule}, by default` : "always so");
}

function neededAt(row) {
  return row.needs.length ? `call ${row.needs[0].call}` : "";
}

function neededWords(row) {
  return row.needs.length ? "needed again" : "";
}

function regretTable(regrets, { withSession, onShow }) {
  const columns = [
    {
      title: "Item",
      of: (row) => row.what,
      search: (row) => `${row.what} ${row.item_id}`,
      show: (row) => itemButton(row, onShow),
    },
    { title: "Tokens", of: (row) => row.tokens, numeric: true },
    { title: "To read again", of: tokensToRead, numeric: true },
    { title: "Left before call", of: (row) => row.call, numeric: true },
    { title: "By step", of: (row) => row.step },
    {
      title: "Needed at call",
      of: (row) => row.needs[0].call,
      show: (row) => neededCalls(row),
      numeric: true,
    },
    {
      title: "What shows it",
      of: (row) => row.needs[0].kind,
      show: evidence,
      search: evidenceText,
      words: true,
    },
  ];
  if (withSession) columns.unshift(sessionColumn((row) => row.session));
  const sort = columns.findIndex((column) => column.title === "To read again");
  const table = {
    name: "Regret",
    rowNames: ["item needed again", "items needed again"],
    rows: regrets,
    columns,
    sort,
    descending: true,
  };
  return new DataTable(table).element;
}

function tokensToRead(row) {
  const tokens = row.needs.reduce((sum, need) => sum + need.tokens, 0);
  return Math.min(tokens, row.tokens);
}

function linesOf(need) {
  const spans = need.ranges.map(({ first, last }) => (first === last ? first : `${first}–${last}`));
  const word = need.ranges.every(({ first, last }) => first === last) && spans.length === 1;
  return `${word ? "line" : "lines"} ${[...new Set(spans)].join(", ")}`;
}

function neededCalls(row) {
  const calls = [...new Set(row.needs.map((need) => need.call))];
  const more = calls.length > 3 ? ` and ${calls.length - 3} more` : "";
  return calls.slice(0, 3).join(", ") + more;
}

function evidenceText(row) {
  return row.needs.map((need) => [need.kind, need.item_id, ...need.found].join(" ")).join(" ");
}

function evidence(row) {
  const times = row.needs.length > 1 ? `, ${row.needs.length} times` : "";
  const folded = element("details", {}, element("summary", {}, `${row.needs[0].kind}${times}`));
  folded.addEventListener("toggle", () => {
    if (!folded.open || folded.children.length > 1) return;
    for (const need of row.needs) {
      folded.append(
        element(
          "div",
          {},
          `call ${need.call}, ${need.item_id}: ${need.kind}, ${linesOf(need)}`,
        ),
        ...need.found.map((found) => element("pre", {}, found)),
      );
    }
  });
  return folded;
}

// A session by its first words and its day; it is also found by its file.
function sessionColumn(sessionOf = (row) => row, onPick = null) {
  const named = (session) => {
    const title = element("bdi", { class: "title", title: session.name }, session.title);
    if (!onPick) return title;
    const onclick = () => onPick(session.number);
    return element("button", { type: "button", title: session.name, onclick }, title);
  };
  return {
    title: "Session",
    words: true,
    of: (row) => sessionOf(row).title,
    search: (row) => {
      const { title, day, name, format, path } = sessionOf(row);
      return `${title} ${day || ""} ${name} ${format} ${path}`;
    },
    show: (row) => {
      const session = sessionOf(row);
      const day = session.day ? element("div", { class: "muted" }, dayText(session.day)) : null;
      return element("div", {}, named(session), day);
    },
  };
}

function sessionTable(sessions, { isPriced, onPick }) {
  const arrow = (key, text) => (row) => `${text(row[`${key}_without`])} → ${text(row[`${key}_with`])}`;
  const numeric = (title, of, show) => ({ title, of, show, numeric: true });
  const columns = [
    sessionColumn((row) => row, onPick),
    numeric("Calls", (row) => row.calls),
    numeric("Tokens sent", (row) => row.tokens_without, arrow("tokens", short)),
    numeric(
      "Change",
      (row) => (row.tokens_with - row.tokens_without) / (row.tokens_without || 1),
      (row) => change(row.tokens_without, row.tokens_with),
    ),
    numeric("Largest context", (row) => row.largest_without, arrow("largest", short)),
    numeric("Over the window", (row) => row.over_window_without, arrow("over_window", whole)),
    numeric("Removed", (row) => row.removed_items),
    numeric("Needed again", (row) => row.regretted_items),
  ];
  if (isPriced) {
    // Those without prices come last when it is sorted from the largest on.
    const known = (row, of) => (row.net.dollars === null ? -Infinity : of(row));
    const paid = (row) => row.net.without.dollars;
    const net = (row) => row.net.dollars;
    columns.push(
      numeric(
        "$ without",
        (row) => known(row, paid),
        (row) => (row.net.dollars === null ? "–" : dollars(paid(row))),
      ),
      numeric(
        "Net $",
        (row) => known(row, net),
        (row) => (row.net.dollars === null ? "–" : signedDollars(net(row))),
      ),
    );
  }
  return new DataTable({
    name: "Sessions",
    rowNames: ["session", "sessions"],
    rows: sessions,
    columns,
    sort: isPriced ? columns.length - 1 : null,
    descending: isPriced,
  }).element;
}
