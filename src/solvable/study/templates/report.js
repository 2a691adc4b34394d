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
    if (place.clientWidth >= narrow) return layout;
    /* On a phone the legend goes below, where it takes no width from the axes. */
    const labels = drawing.data.filter((trace) => trace.showlegend).map((trace) => trace.name.length);
    const columns = 7 * Math.max(0, ...labels) + 56 < place.clientWidth / 2 ? 2 : 1;
    const room = 20 * Math.ceil(labels.length / columns) + 16;
    const bottom = 56;
    layout.height += bottom + room - layout.margin.b;
    Object.assign(layout.margin, { l: 68, r: 12, b: bottom + room });
    const axes = layout.height - layout.margin.t - layout.margin.b;
    layout.legend = Object.assign({}, layout.legend, {
      orientation: "h", x: 0, xanchor: "left", y: -bottom / axes, yanchor: "top",
      entrywidthmode: "fraction", entrywidth: 1 / columns,
    });
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
