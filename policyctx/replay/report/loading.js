// Unpacks the plotting library, and draws the charts with it.
(async () => {
  const script = document.createElement("script");
  script.textContent = await textOf("library");
  document.head.append(script);
  drawCharts(document);
})();
