"use strict";
/* Draw the figures of the setting that the sliders show. */
(function () {
  const stored = JSON.parse(document.getElementById("data").textContent);
  const inputs = stored.sliders.map((_, k) => document.getElementById("slider-" + k));
  const outputs = stored.sliders.map((_, k) => document.getElementById("value-" + k));
  const places = stored.names.map((name) => document.getElementById("figure-" + name));
  const ranges = rangesOf();

{% include "figure_layout.js" %}

  /* Axes have one range for all settings, so that lines move and axes do not. */
  function rangesOf() {
    const found = {};
    stored.entries.forEach((entry) => Object.entries(entry.figures).forEach(function ([name, one]) {
      const layout = stored.pool[one.layout];
      ["xaxis", "yaxis"].forEach(function (axis) {
        const key = name + " " + axis + " " + layout[axis].type;
        const range = layout[axis].range;
        if (!range) return;
        const old = found[key] || range;
        found[key] = [Math.min(old[0], range[0]), Math.max(old[1], range[1])];
      });
    }));
    return found;
  }

  /* Ticks of one setting may be millions on the range of all settings. */
  function setTicks(axis) {
    const [low, high] = axis.range;
    delete axis.minor;
    if (high - low >= 2) {
      delete axis.tickvals;
      delete axis.ticktext;
      axis.tickmode = "linear";
      axis.tick0 = 0;
      axis.dtick = Math.ceil((high - low) / 10);
      return;
    }
    axis.tickmode = "array";
    axis.tickvals = [];
    for (let power = Math.floor(low); power <= high; power += 1) {
      [1, 2, 5].forEach((digit) => { axis.tickvals.push(digit * 10 ** power); });
    }
    axis.ticktext = axis.tickvals.map((tick) => String(Number(tick.toPrecision(3))));
  }

  function drawingOf(name, one) {
    const layout = structuredClone(stored.pool[one.layout]);
    ["xaxis", "yaxis"].forEach(function (axis) {
      const range = ranges[name + " " + axis + " " + layout[axis].type];
      if (range) layout[axis].range = range.slice();
      if (range && layout[axis].type === "log") setTicks(layout[axis]);
    });
    layout.uirevision = name;
    const data = one.data.map(function ([look, columns]) {
      const trace = structuredClone(stored.pool[look]);
      Object.entries(columns).forEach(([key, k]) => { trace[key] = stored.pool[k]; });
      return trace;
    });
    return { data: data, layout: layout };
  }

  function index() {
    return inputs.reduce((sum, input, k) => sum * stored.sliders[k].length + Number(input.value), 0);
  }

  function show() {
    waiting = false;
    const entry = stored.entries[index()];
    document.getElementById("status").textContent = entry.refusal ? "No prediction: " + entry.refusal : "";
    document.getElementById("command").textContent = entry.command;
    stored.names.forEach(function (name, k) {
      const one = entry.figures[name];
      const place = places[k].querySelector(".drawing");
      const picture = places[k].querySelector(".picture");
      places[k].hidden = !one;
      if (!one) return;
      const words = stored.pool[one.words];
      place.setAttribute("aria-label", words + " " + settingInWords());
      place.hidden = false;
      picture.classList.add("replaced");
      const drawing = drawingOf(name, one);
      drawing.layout.width = undefined;
      Plotly.react(place, drawing.data, layoutFor(place, drawing), settings).catch(function (error) {
        place.hidden = true;
        place.dataset.error = String(error);
        picture.classList.remove("replaced");
      });
    });
    document.body.dataset.shown = String(index());
    keep();
  }

  function settingInWords() {
    return inputs.map((input, k) => input.labels[0].textContent + " " + outputs[k].value).join(", ") + ".";
  }

  /* The address holds the setting; some browsers refuse this for files. */
  function keep() {
    try {
      history.replaceState(null, "", "#" + inputs.map((input) => input.value).join(","));
    } catch (error) { /* the page works without it */ }
  }

  let waiting = false;
  inputs.forEach(function (input, k) {
    const showValue = function () {
      outputs[k].value = stored.sliders[k][Number(input.value)];
      input.setAttribute("aria-valuetext", outputs[k].value);
    };
    input.addEventListener("input", function () {
      showValue();
      if (!waiting) requestAnimationFrame(show);
      waiting = true;
    });
    const place = Number(location.hash.slice(1).split(",")[k]);
    if (location.hash && Number.isInteger(place) && place >= 0 && place < stored.sliders[k].length) {
      input.value = String(place);
    }
    showValue();
  });
  show();
})();
