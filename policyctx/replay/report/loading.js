// Unpacks the plotting library, and draws the charts with it.
(async () => {
  const packed = document.getElementById("library").textContent;
  const bytes = Uint8Array.from(atob(packed), (one) => one.charCodeAt(0));
  const unpacked = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  const script = document.createElement("script");
  script.textContent = await new Response(unpacked).text();
  document.head.append(script);
  drawCharts(document);
})();
