// The front of a study: net dollars against regretted tokens, and the comparisons of the best.

const STUDY = valuesOf("study");

// The file's name, or the preset's.
const INCUMBENT = STUDY.incumbent.split(/[\\/]/).pop();

function points(name, rows, look) {
  return { name, points: rows.map((row) => [row.net, row.regret_tokens]), ...look };
}

// Told apart by their shapes, since labels in the drawing would cover one another.
const OTHER_SHAPES = ["diamond", "square", "cross", "triangle-up", "star", "hexagon", "pentagon", "x"];

function shortName(name, most) {
  return name.length <= most ? name : `${name.slice(0, most - 1)}…`;
}

function frontChart() {
  const judged = STUDY.judged.map((one) => ({ ...one, setting: one.name }));
  const best = STUDY.best ? [{ ...STUDY.best, setting: STUDY.best.name }] : [];
  const front = STUDY.rows.filter((row) => row.on_front).sort((one, other) => one.net - other.net);
  const others = STUDY.rows.filter((row) => row.kind !== "front");
  return chart({
    name: "Net dollars against regret",
    sentence:
      "Each point is a setting over all sessions. Further left costs less, further down less must" +
      " be read again; none of the settings on the line is worse than another one in both.",
    series: [
      points("tried", judged, { colour: COLOURS.without, shape: "circle", size: 7 }),
      points("the front", front, {
        colour: COLOURS.with,
        shape: "circle",
        size: 11,
        line: { width: 2, isStepped: true },
      }),
      ...others.map((row, i) =>
        points(shortName(row.setting, NARROW.matches ? 24 : 48), [row], {
          colour: COLOURS.removed,
          shape: OTHER_SHAPES[i % OTHER_SHAPES.length],
          size: 15,
          isOpen: true,
        }),
      ),
      points("the best setting", best, {
        colour: COLOURS.window,
        shape: "circle",
        size: 20,
        isOpen: true,
      }),
    ],
    x: {
      title: "net $, below 0 is saved",
      format: (net) => `${net < 0 ? "−" : ""}$${short(Math.abs(net))}`,
      least: CENT,
    },
    y: { title: "regretted tokens", format: short, least: 1 },
    targets: [...STUDY.rows, ...judged, ...best].map((row) => ({
      x: row.net,
      y: row.regret_tokens,
      text: `${row.setting}: ${signedDollars(row.net)} net, ${whole(row.regret_tokens)} tokens regretted`,
    })),
    table: {
      name: "Settings",
      rowNames: ["setting", "settings"],
      rows: STUDY.rows,
      columns: [
        { title: "Setting", of: (row) => row.setting, words: true },
        { title: "Net $", of: (row) => row.net, show: (row) => signedDollars(row.net), numeric: true },
        { title: "Regret tokens", of: (row) => row.regret_tokens, numeric: true },
        { title: "Dearer sessions", of: (row) => row.dearer, numeric: true },
        { title: "Never acted", of: (row) => row.never_acted, numeric: true },
      ],
    },
  });
}

function comparisonOf(one) {
  const bounds = one.interval ? `95 %: ${one.interval.map(unbroken).join(" to ")}; ` : "";
  return [
    `Against ${one.against}`,
    signedDollars(one.difference),
    `${bounds}${tallyText(one.tally)}`,
    ESTIMATED,
  ];
}

function tallyText({ wins, losses, ties }) {
  return [
    counted(wins, "win"),
    counted(losses, "loss", "losses"),
    counted(ties, "tie"),
  ].join(", ");
}

const isChanged = (one) => Object.keys(one.setting).length > 0;

function headline() {
  const { best, winner } = STUDY;
  if (STUDY.interrupted && best) return `Interrupted: the best so far is ${best.name}`;
  if (!winner) {
    const [cheapest] = [...STUDY.rows].sort((one, other) => one.net - other.net);
    return `${cheapest.setting} costs least: net ${signedDollars(cheapest.net)}`;
  }
  return isChanged(winner) ? `Change ${INCUMBENT}: ${winner.name}` : `Keep ${INCUMBENT} as it is`;
}

// A line does not end between the sign and the $.
const unbroken = (number) => signedDollars(number).replace("$", "\u2060$");

// What the choice is worth where it was not made.
function lead() {
  const { tested } = STUDY;
  if (STUDY.interrupted) return ["It is not tested on other projects."];
  if (!tested) return [
      "Presets are ranked only: there are too few projects to test a setting on some that it was" +
        " not chosen on. ",
      howKnown(ESTIMATED),
    ];
  const size = Math.abs(tested.difference);
  const interval = (tested.interval || []).map(unbroken).join(" to ");
  const bounds = interval && ` (95 %: ${interval})`;
  const verdict = tested.holds
    ? "That is more than one standard error."
    : "That is not more than one standard error, so the policy stays.";
  return [
    `On projects left out of the search the choice ${tested.difference < 0 ? "saves" : "costs"}` +
      ` ${dollars(size)} more than ${INCUMBENT}${bounds}. ${verdict}${price()} `,
    howKnown(ESTIMATED),
  ];
}

// What the change does to regret, and to the sessions that are dearer than without a policy.
function price() {
  const { winner } = STUDY;
  if (!winner || !isChanged(winner)) return "";
  const before = STUDY.rows.find((row) => row.kind === "incumbent");
  return (
    ` Over all sessions, tokens to read again: ${whole(before.regret_tokens)} → ${whole(winner.regret_tokens)};` +
    ` sessions dearer than without a policy: ${whole(before.dearer)} → ${whole(winner.dearer)}.`
  );
}

function kicker() {
  const left = STUDY.sessions_without_prices;
  const rest = left ? `; ${counted(left, "session")} without prices left out` : "";
  return (
    `Settings of ${INCUMBENT} over ${counted(STUDY.sessions.length, "session")} of` +
    ` ${counted(STUDY.projects, "project")}: ${counted(STUDY.settings, "setting")},` +
    ` ${counted(STUDY.replays, "replay")}${rest}; policyctx ${STUDY.version}, seed ${STUDY.seed},` +
    ` prices of ${STUDY.prices_of}`
  );
}

function startStudy() {
  document.getElementById("kicker").append(kicker());
  document.getElementById("title").append(headline());
  document.getElementById("about").append(...lead());
  const main = document.getElementById("main");
  if (STUDY.tested)
    main.append(
      section(
        "On projects left out of the search",
        figureList([comparisonOf(STUDY.tested)]),
      ),
    );
  if (STUDY.diff) main.append(section("What to change", element("pre", {}, STUDY.diff)));
  const legend = STUDY.legend.length ? element("p", { class: "muted" }, `${STUDY.legend.join("; ")}.`) : "";
  main.append(section("The front", frontChart(), legend));
  if (STUDY.comparisons.length)
    main.append(
      section(
        "The best setting, on the projects that it was chosen on",
        element("p", {}, STUDY.best.name),
        figureList(STUDY.comparisons.map(comparisonOf)),
      ),
    );
}

startStudy();
