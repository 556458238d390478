// What the recorded compactions lost: a table and, for one session, the quotations to unfold.

const POINTS = { Orders: "order", Values: "exact value", Tasks: "open task", Files: "edited file" };
const times = new Intl.DateTimeFormat("en", {
  dateStyle: "medium",
  timeStyle: "short",
  hourCycle: "h23",
  timeZone: "UTC",
});

// Nothing for a time that no date can hold.
function timeText(at) {
  const when = new Date(1000 * at);
  return at === null || Number.isNaN(when.getTime()) ? "" : `, ${times.format(when)} UTC`;
}

// With `onPick` there are several sessions, each a button in the table.
function auditSection(sessions, onPick = null) {
  const rows = sessions.flatMap((session) => session.audited.map((one) => ({ ...one, session })));
  if (!rows.length) return null;
  const told =
    "Orders, exact values, open tasks and edited files from before each compaction of the recorded" +
    " agent that the first request after it does not have, as missing / all, and how many of the" +
    " missing ones a later turn shows. Whether an order still holds is not judged.";
  const below = onPick ? [] : rows.map(quotations);
  const table = auditTable(rows, onPick);
  return section("What the recorded compactions lost", element("p", {}, told), table, ...below);
}

function auditTable(rows, onPick) {
  const numeric = (title, of, show) => ({ title, of, show, numeric: true });
  const columns = [
    numeric("Before call", (row) => row.call),
    numeric("Replaced", (row) => row.replaced),
    ...Object.entries(POINTS).map(([title, kind]) => {
      const missing = (row) => (row.is_unreadable ? "?" : row.missing[kind] || 0);
      return numeric(title, missing, (row) => `${missing(row)}/${row.points[kind] || 0}`);
    }),
    numeric("Shown later", (row) => (row.is_unreadable ? "unreadable" : row.missed)),
  ];
  if (onPick) columns.unshift(sessionColumn((row) => row.session, onPick));
  const rowNames = ["compaction", "compactions"];
  return new DataTable({ name: "Compactions", rowNames, rows, columns, hasFinder: false }).element;
}

function quotations({ call, at, findings, points, beside, is_unreadable: isUnreadable }) {
  if (isUnreadable) {
    const all = sumOf(points);
    const told =
      `Before call ${call} the summary is unreadable, so nothing counts as lost. The request has` +
      ` ${beside} of ${all} orders, values, tasks and files without it.`;
    return element("p", {}, told);
  }
  if (!findings.length) return null;
  const title = `Missing after the compaction before call ${call}${timeText(at)}`;
  const list = element("ul", {}, ...findings.map(quotation));
  return element("details", {}, element("summary", {}, title), list);
}

function quotation({ kind, call, at, text, state, values, later }) {
  const more = [state, values.length && `missing: ${values.join(", ")}`].filter(Boolean).join("; ");
  const after = later.map((one) => {
    const how = one.how === "before" ? "" : `, ${one.how}`;
    return element("li", {}, `later, call ${one.call}${how}: `, element("bdi", {}, one.text));
  });
  const quoted = element("bdi", {}, text);
  const rest = after.length ? element("ul", {}, ...after) : null;
  return element("li", {}, `${kind}, call ${call}${timeText(at)}: `, quoted, more && ` (${more})`, rest);
}
