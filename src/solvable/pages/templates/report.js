"use strict";
/* Replace each picture by its interactive drawing; what cannot be drawn stays a picture. */
(function () {
  const drawings = JSON.parse(document.getElementById("drawings").textContent);
  const narrow = 620;
  const settings = {
    responsive: true,
    displaylogo: false,
    modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"],
  };

  function layoutFor(place, drawing) {
    const layout = structuredClone(drawing.layout);
    const phone = place.clientWidth < narrow;
    if (!phone && (layout.legend || {}).orientation !== "h") return layout;
    /* A legend below needs room for all its rows: plotly would make them by shrinking the axes, and
       lay the legend over the title of the axis. On a phone it always goes below. */
    const labels = drawing.data.filter((trace) => trace.showlegend).map((trace) => trace.name.length);
    const fitting = Math.floor(0.85 * place.clientWidth / (7 * Math.max(1, ...labels) + 56));
    const columns = Math.max(1, Math.min(fitting, labels.length));
    const room = 20 * Math.ceil(labels.length / columns) + 16;
    const bottom = 56;
    if (phone) Object.assign(layout.margin, { l: 68, r: 12 });
    layout.height += bottom + room - layout.margin.b;
    layout.margin.b = bottom + room;
    const axes = layout.height - layout.margin.t - layout.margin.b;
    layout.legend = Object.assign({}, layout.legend, {
      orientation: "h", x: 0, xanchor: "left", y: -bottom / axes, yanchor: "top",
      entrywidthmode: "fraction", entrywidth: 1 / columns,
    });
    if (!phone) return layout;
    const [low, high] = layout.xaxis.range;
    (layout.annotations || []).forEach(function (label) {
      if (label.xref === "x" && (label.x - low) / (high - low) > 0.7) {
        Object.assign(label, { xanchor: "right", xshift: -1 });
      }
    });
    return layout;
  }

  /* What is folded would be missing on paper. */
  window.addEventListener("beforeprint", function () {
    document.querySelectorAll("details").forEach((one) => { one.open = true; });
  });

  let drawn = 0;
  const places = Array.from(document.querySelectorAll(".drawing"));
  const done = places.map(function (place) {
    const drawing = drawings[Number(place.dataset.index)];
    const picture = place.parentElement.querySelector(".picture");
    place.hidden = false;
    return Promise.resolve()
      .then(() => Plotly.newPlot(place, drawing.data, layoutFor(place, drawing), settings))
      .then(function () {
        place.dataset.traces = String(place.data.length);
        picture.classList.add("replaced");
        drawn += 1;
      })
      .catch(function (error) {
        place.hidden = true;
        place.dataset.error = String(error);
      });
  });
  Promise.all(done).then(function () {
    document.body.dataset.drawn = String(drawn);
  });
})();
