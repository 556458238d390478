// The front of a study: net dollars against regretted tokens, and the comparisons of the best.

const STUDY = valuesOf("study");

function signedDollars(number) {
  const sign = number > 0 ? "+" : number < 0 ? "−" : "";
  return `${sign}${dollars(Math.abs(number))}`;
}

function points(name, rows, more) {
  return {
    type: "scatter",
    mode: "markers",
    name,
    x: rows.map((row) => row.net),
    y: rows.map((row) => row.regret_tokens),
    text: rows.map((row) => plain(row.setting)),
    hovertemplate: "%{text}<br>$%{x:,.2f} net, %{y:,} tokens regretted<extra></extra>",
    ...more,
  };
}

function frontChart() {
  const judged = STUDY.judged.map((one) => ({ ...one, setting: one.name }));
  const front = STUDY.rows.filter((row) => row.kind === "front");
  const others = STUDY.rows.filter((row) => row.kind !== "front");
  const line = { mode: "lines+markers", line: { shape: "hv" } };
  return chart({
    name: "Net dollars against regret",
    sentence:
      "Each point is a setting over all sessions. Further left costs less, further down less must" +
      " be read again; none of the settings on the line is worse than another one in both.",
    traces: [
      points("tried", judged, { marker: { color: COLOURS.without, size: 6, opacity: 0.6 } }),
      points("the front", front, { ...line, marker: { color: COLOURS.with, size: 9 } }),
      points("for comparison", others, {
        mode: "markers+text",
        textposition: "top center",
        marker: { color: COLOURS.removed, size: 11, symbol: "diamond" },
      }),
    ],
    layout: {
      height: 420,
      xaxis: axis("net $, below 0 is saved", { tickformat: "$~s" }),
      yaxis: axis("regretted tokens", { tickformat: "~s" }),
    },
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
  const bounds = one.interval ? ` [${one.interval.map(signedDollars).join(", ")}]` : "";
  const { wins, losses, ties } = one.tally;
  return [
    `Against ${one.against}`,
    signedDollars(one.difference),
    `${bounds} ${wins} wins, ${losses} losses, ${ties} ties`,
  ];
}

function startStudy() {
  document
    .getElementById("about")
    .append(
      `${counted(STUDY.sessions.length, "session")} of ${counted(STUDY.projects, "project")};` +
        ` ${counted(STUDY.settings, "setting")}, ${counted(STUDY.replays, "replay")};` +
        ` policyctx ${STUDY.version}, seed ${STUDY.seed}; prices of ${STUDY.prices_of}.`,
    );
  const main = document.getElementById("main");
  main.append(section("The front", frontChart()));
  if (STUDY.comparisons.length)
    main.append(
      section(
        "The best setting",
        element("p", {}, STUDY.best.name),
        figureList(STUDY.comparisons.map(comparisonOf)),
      ),
    );
  if (STUDY.tested)
    main.append(
      section(
        "On projects left out of the search",
        figureList([comparisonOf(STUDY.tested)]),
        element(
          "p",
          {},
          STUDY.tested.holds
            ? "The choice saves more than one standard error beyond the incumbent."
            : "The choice does not save more than one standard error, so the incumbent stays.",
        ),
      ),
    );
  if (STUDY.diff) main.append(section("The diff", element("pre", {}, STUDY.diff)));
}

startStudy();
