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
    /* A long title of the axis is set smaller, so that it is not cut. */
    const title = (layout.xaxis.title || {}).text || "";
    const wide = place.clientWidth - layout.margin.l - layout.margin.r + 2 * layout.margin.r;
    if (title) layout.xaxis.title.font = { size: Math.max(9, Math.min(14, wide / (0.58 * title.length))) };
    const [low, high] = layout.xaxis.range;
    (layout.annotations || []).forEach(function (label) {
      if (label.xref === "x" && (label.x - low) / (high - low) > 0.7) {
        Object.assign(label, { xanchor: "right", xshift: -1 });
      }
    });
    return layout;
  }
