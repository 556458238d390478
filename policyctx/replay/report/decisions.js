// The tables of what left the context, of what was needed again, and of the sessions.

function decisionTable(removals, { withSession, onShow }) {
  const numeric = (title, of) => ({ title, of, numeric: true });
  const columns = [
    numeric("Before call", (row) => row.call),
    {
      title: "Item",
      of: (row) => row.what,
      search: (row) => `${row.what} ${row.item_type} ${row.item_id}`,
      show: (row) => itemButton(row, onShow),
    },
    { title: "Action", of: (row) => row.action },
    { title: "Step", of: (row) => row.step, words: true },
    numeric("Tokens", (row) => row.tokens),
    numeric("Freed", (row) => row.freed),
    {
      title: "Why",
      of: (row) => row.reason,
      search: (row) => `${row.reason} ${row.place} ${row.rule}`,
      show: reasonAndPlace,
      words: true,
    },
    { title: "File", of: (row) => row.path || "", words: true },
    {
      title: "Needed again",
      of: (row) => row.needs.length && row.needs[0].call,
      show: neededAt,
      search: neededWords,
      numeric: true,
    },
  ];
  if (withSession) {
    columns.unshift({ title: "Session", of: (row) => row.session.name, words: true });
  }
  return new DataTable({
    name: "Decisions",
    rowNames: ["decision", "decisions"],
    rows: removals,
    columns,
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

function reasonAndPlace(row) {
  const says = row.place || row.rule;
  return element("div", {}, row.reason, says ? element("div", { class: "muted" }, says) : null);
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
  if (withSession)
    columns.unshift({ title: "Session", of: (row) => row.session.name, words: true });
  const sort = columns.findIndex((column) => column.title === "Tokens");
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
        element("div", {}, `call ${need.call}, ${need.item_id}: ${need.kind}`),
        ...need.found.map((found) => element("pre", {}, found)),
      );
    }
  });
  return folded;
}

function sessionTable(sessions, { isPriced, onPick }) {
  const numeric = (title, of, show) => ({ title, of, show, numeric: true });
  const columns = [
    {
      title: "Session",
      words: true,
      of: (row) => row.name,
      search: (row) => `${row.name} ${row.format} ${row.path}`,
      show: (row) =>
        element("button", { type: "button", onclick: () => onPick(row.number) }, row.name),
    },
    numeric("Calls", (row) => row.calls),
    numeric(
      "Sent",
      (row) => row.without.tokens,
      (row) => short(row.without.tokens),
    ),
    numeric(
      "Sent with it",
      (row) => row.with.tokens,
      (row) => short(row.with.tokens),
    ),
    numeric(
      "Change",
      (row) => (row.with.tokens - row.without.tokens) / (row.without.tokens || 1),
      (row) => change(row.without.tokens, row.with.tokens),
    ),
    numeric(
      "Largest",
      (row) => row.without.largest,
      (row) => short(row.without.largest),
    ),
    numeric(
      "Largest with it",
      (row) => row.with.largest,
      (row) => short(row.with.largest),
    ),
    numeric("Over", (row) => row.without.over_window),
    numeric("Over with it", (row) => row.with.over_window),
    numeric("Removed", (row) => row.removed),
    numeric("Regret", (row) => row.regretted),
  ];
  if (isPriced) {
    for (const [title, key] of [
      ["$", "cost_without"],
      ["$ with it", "cost_with"],
    ]) {
      columns.push(
        numeric(
          title,
          (row) => sumOf(row[key]),
          (row) => dollars(sumOf(row[key])),
        ),
      );
    }
  }
  return new DataTable({
    name: "Sessions",
    rowNames: ["session", "sessions"],
    rows: sessions,
    columns,
  }).element;
}
