// A chart: a figure with a sentence, a drawing, and the same figures as a table.

// They stand out from a light page as well as from a dark one.
const COLOURS = {
  without: "#7b8794",
  with: "#2f7de1",
  window: "#d9483b",
  removed: "#c27212",
  anew: "#9b5fd0",
};

// The library reads a little markup in its labels; what a session holds is none.
function plain(text) {
  return String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
}

function axis(title, more) {
  return {
    title: { text: title, standoff: 8 },
    fixedrange: true,
    automargin: true,
    zeroline: false,
    ...more,
  };
}

function layoutOf(more) {
  return {
    autosize: true,
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: "system-ui, sans-serif", size: 13 },
    margin: { l: 8, r: 12, t: 8, b: 8 },
    legend: { orientation: "h", y: 1.02, yanchor: "bottom", x: 0, traceorder: "normal" },
    dragmode: false,
    ...more,
  };
}

// Returns a figure; it is drawn when it is in the page, since only there it has a width.
function chart({ name, sentence, traces, layout, table }) {
  const drawing = element("div", {
    class: "chart",
    role: "img",
    "aria-label": `${name}. ${sentence}`,
  });
  drawing.draw = () =>
    Plotly.newPlot(drawing, traces, layoutOf(layout), { displayModeBar: false, responsive: true });
  return figure(name, sentence, drawing, table);
}

// A drawing between its sentence and its figures, which are made when they are unfolded.
function figure(name, sentence, drawing, table) {
  const figures = element("details", {}, element("summary", {}, `${name}: the figures`));
  figures.addEventListener("toggle", () => {
    if (figures.open && figures.children.length === 1) figures.append(new DataTable(table).element);
  });
  return element(
    "figure",
    { "aria-label": name },
    element("figcaption", {}, sentence),
    drawing,
    figures,
  );
}

// Until the library has been read there is nothing to draw with; it calls this when it is there.
function drawCharts(root) {
  if (!("Plotly" in window)) return;
  for (const drawing of root.querySelectorAll(".chart")) drawing.draw();
  // The library measures texts in a drawing outside of what is seen.
  document.getElementById("js-plotly-tester")?.setAttribute("aria-hidden", "true");
}

function clearCharts(root) {
  if (!("Plotly" in window)) return;
  for (const drawing of root.querySelectorAll(".chart")) Plotly.purge(drawing);
}

// A drawing keeps its width when the page is put on paper, which is narrower than most screens.
const PAPER_WIDTH = 660;

window.addEventListener("beforeprint", () => resizeCharts({ autosize: false, width: PAPER_WIDTH }));
window.addEventListener("afterprint", () => resizeCharts({ autosize: true, width: null }));

function resizeCharts(size) {
  for (const drawing of document.querySelectorAll(".chart.js-plotly-plot"))
    Plotly.relayout(drawing, size);
}
