  const narrow = 620;
  const settings = {
    responsive: true,
    displaylogo: false,
    modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"],
  };

  /* Break a text between words; its widest line has about this many characters. */
  function wrapped(text, most) {
    const lines = [""];
    text.split(" ").forEach(function (word) {
      const last = lines[lines.length - 1];
      if (last && last.length + word.length + 1 > most) lines.push(word);
      else lines[lines.length - 1] = last ? `${last} ${word}` : word;
    });
    return lines;
  }

  /* Keep every second, third, ... label of an axis whose labels would touch. */
  function thin(axis, room) {
    if (!axis.tickvals) return;
    const longest = Math.max(...axis.ticktext.map((text) => text.length));
    const step = Math.ceil(axis.tickvals.length * (8 * longest + 10) / room);
    axis.tickvals = axis.tickvals.filter((_, place) => place % step === 0);
    axis.ticktext = axis.ticktext.filter((_, place) => place % step === 0);
  }

  /* Rows of labels of vertical lines, of which the first stand to the right of their lines and the
     others to the left, or nothing if a label leaves the drawing or a line runs through a text. */
  function arranged(flags, first, margins) {
    const placed = [];
    flags.forEach(function (flag, index) {
      flag.left = index >= first;
      flag.from = flag.left ? flag.at - flag.length : flag.at;
      flag.to = flag.left ? flag.at : flag.at + flag.length;
    });
    if (flags.some((flag) => flag.from < -margins.l || flag.to > margins.end)) return undefined;
    const order = [...flags.slice(0, first).reverse(), ...flags.slice(first)];
    for (const flag of order) {
      const free = (row) => placed.every((other) =>
        (row !== other.row || flag.to <= other.from || other.to <= flag.from) &&
        (row > other.row || other.at <= flag.from || other.at >= flag.to) &&
        (row < other.row || flag.at <= other.from || flag.at >= other.to));
      flag.row = 0;
      while (!free(flag.row)) {
        flag.row += 1;
        if (flag.row > flags.length) return undefined;
      }
      placed.push(flag);
    }
    return flags.map((flag) => ({ ...flag }));
  }

  /* Place the labels of vertical lines above the axes, in as few rows as this width allows. */
  function placeFlags(layout, across) {
    const row = 17;
    const [low, high] = layout.xaxis.range;
    const labels = (layout.annotations || []).filter((one) => one.xref === "x" && one.yref === "paper");
    const stems = (layout.shapes || []).filter((shape) => shape.y0 === 1);
    if (!labels.length || stems.length !== labels.length) return;
    const most = Math.floor(across / 2 / 6.8);
    const found = labels.map(function (label, index) {
      /* pointing at a label shows all of it */
      if (label.text.length > most) label.text = `${label.text.slice(0, most - 1).replace(/&[^;]*$/, "")}…`;
      const at = (label.x - low) / (high - low) * across;
      return { label, stem: stems[index], at, length: 6.8 * label.text.length + 6 };
    }).sort((a, b) => a.at - b.at);
    const margins = { l: layout.margin.l, end: across + layout.margin.r };
    const height = (some) => 1 + Math.max(...some.map((flag) => flag.row));
    let flags;
    for (let first = found.length; first >= 0; first -= 1) {
      const tried = arranged(found, first, margins);
      if (tried && (!flags || height(tried) < height(flags))) flags = tried;
    }
    /* Labels that are too long for this width have a row each. */
    flags = flags || found.map(function (flag, index) {
      flag.label.bgcolor = "white";
      return { ...flag, row: index, left: flag.at > across / 2 };
    });
    const rows = height(flags);
    const axes = layout.height - layout.margin.t - layout.margin.b;
    const top = 34 + rows * row;
    layout.height += top - layout.margin.t;
    layout.margin.t = top;
    flags.forEach(function (flag) {
      const up = row * (flag.row + 0.85);
      flag.stem.y1 = 1 + up / axes;
      flag.label.yshift = up - row + 2;
      if (flag.left) Object.assign(flag.label, { xanchor: "right", xshift: -1 });
    });
  }

  function layoutFor(place, drawing) {
    const layout = structuredClone(drawing.layout);
    const width = place.clientWidth;
    const phone = width < narrow;
    const labels = drawing.data.filter((trace) => trace.showlegend).map((trace) => trace.name.length);
    const longest = Math.max(1, ...labels);
    const beside = (layout.legend || {}).orientation !== "h" && 7 * longest + 56 < 0.4 * width;
    Object.assign(layout.margin, phone ? { l: layout.margin.l - 8, r: 12 } : { r: 24 });
    const across = width - layout.margin.l - layout.margin.r - (beside ? 7 * longest + 56 : 0);
    thin(layout.xaxis, across);
    const title = wrapped(layout.xaxis.title.text, Math.max(20, Math.floor(across / 9)));
    layout.xaxis.title.text = title.join("<br>");
    /* A legend below needs room for all its rows: plotly would make them by shrinking the axes, and
       lay the legend over the title of the axis. On a phone it always goes below. */
    const fitting = Math.floor(0.85 * width / (7 * longest + 56));
    const columns = Math.max(1, Math.min(fitting, labels.length));
    const below = !phone && beside ? 0 : 20 * Math.ceil(labels.length / columns) + 16;
    const bottom = 56 + 17 * (title.length - 1);
    layout.height += bottom + below - layout.margin.b;
    layout.margin.b = bottom + below;
    placeFlags(layout, across);
    if (!below) return layout;
    const axes = layout.height - layout.margin.t - layout.margin.b;
    /* A single column of long names begins at the edge of a narrow page. */
    const start = phone && columns === 1 ? (8 - layout.margin.l) / across : 0;
    layout.legend = Object.assign({}, layout.legend, {
      orientation: "h", x: start, xanchor: "left", y: -bottom / axes, yanchor: "top",
      entrywidthmode: "fraction", entrywidth: 1 / columns,
    });
    return layout;
  }
