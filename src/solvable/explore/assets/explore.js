"use strict";
/* What runs in the page: sliders and their numbers, one request at a time, the address. */
(function () {
  const same = () => window.dash_clientside.no_update;
  const page = Array.from(crypto.getRandomValues(new Uint32Array(3)), (n) => n.toString(36)).join("");
  const patience = 400; /* milliseconds after which a newer setting is sent without an answer */
  const calm = 500; /* milliseconds without a move after which a line is completed */
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  let number = 0;
  let flying = null;
  let last = null;
  let stage = 0;
  let complete = true;
  let pending = false;
  let waiting = 0;
  let slowest = 0;
  let moved = 0;
  const times = (window.exploreTimes = []);

  function painted(since) {
    moved = 0;
    requestAnimationFrame(() => setTimeout(() => times.push(performance.now() - since)));
  }

  function poke(after) {
    clearTimeout(waiting);
    waiting = setTimeout(() => window.dash_clientside.set_props("again", { data: Math.random() }), after);
  }

  function rounded(value, one) {
    if (one.integer) return Math.round(value);
    return Number(value.toPrecision(one.log ? 3 : 6));
  }

  function valueAt(position, one) {
    const part = position / one.positions;
    if (position <= 0) return one.integer ? Math.ceil(one.low) : one.low;
    if (part >= 1) return one.integer ? Math.floor(one.high) : one.high;
    if (one.log) return rounded(one.low * Math.pow(one.high / one.low, part), one);
    return rounded(one.low + part * (one.high - one.low), one);
  }

  function positionOf(value, one) {
    const part = one.log ? Math.log(value / one.low) / Math.log(one.high / one.low)
      : (value - one.low) / (one.high - one.low);
    return Math.round(one.positions * Math.max(0, Math.min(1, part || 0)));
  }

  function keep(wanted, specification) {
    const fields = new URLSearchParams();
    for (const name of specification.names) {
      const value = wanted.values[name];
      const usual = specification.controls[name].default;
      if (value === null || value === undefined || value === "") continue;
      if (value === usual && !specification.always.includes(name)) continue;
      if (specification.controls[name].kind === "text" && value === JSON.stringify(usual)) continue;
      fields.set(name, String(value));
    }
    if (wanted.panel) fields.set("panel", wanted.panel);
    if (wanted.points) fields.set("points", wanted.points);
    clearTimeout(keep.timer);
    keep.timer = setTimeout(function () {
      try {
        history.replaceState(history.state, "", location.pathname + "?" + fields);
      } catch (error) { /* a browser allows only so many changes in a time; the next one counts */ }
    }, 150);
  }

  window.dash_clientside = Object.assign({}, window.dash_clientside, {
    explore: {
      sync: function (position, value, specification) {
        const which = (window.dash_clientside.callback_context.triggered[0] || { prop_id: "" }).prop_id;
        const name = window.dash_clientside.callback_context.inputs_list[0].id.slice("position-".length);
        const one = specification.controls[name];
        if (which.startsWith("position-")) return [same(), valueAt(Number(position), one)];
        if (value === null || value === undefined) return [same(), same()];
        return [String(positionOf(Number(value), one)), same()];
      },

      ask: function (panel, points, fresh, again, ...values) {
        const specification = values.pop();
        const now = performance.now();
        const named = {};
        specification.names.forEach((name, k) => { named[name] = values[k] === undefined ? null : values[k]; });
        const place = document.querySelector(".figures");
        const width = place ? 20 * Math.floor(place.clientWidth / 20) : 800;
        const wanted = { values: named, panel: panel, points: points, fresh: fresh, width: width, dark: dark.matches };
        const key = JSON.stringify(wanted);
        keep(wanted, specification);
        if (flying) {
          /* A request for more of the same line never holds up a new setting. */
          const left = flying.stage > 0 ? 0 : patience - (now - flying.sent);
          pending = key !== last;
          if (pending && left > 0) poke(Math.max(20, left));
          const lost = now - flying.sent > Math.max(60000, 3 * slowest);
          if ((!pending && !lost) || (pending && left > 0)) return same();
        }
        if (key === last) {
          if (complete || stage >= 12) return same();
          stage += 1;
        } else {
          stage = 0;
        }
        last = key;
        number += 1;
        pending = false;
        flying = { n: number, sent: now, stage: stage };
        return Object.assign({ page: page, n: number, stage: stage }, wanted);
      },

      landed: function (answered) {
        if (!flying || !answered || answered.n !== flying.n) return;
        slowest = performance.now() - flying.sent;
        complete = answered.complete;
        if (flying.stage === 0 && moved) painted(moved);
        flying = null;
        poke(pending || complete || stage > 0 ? 0 : calm);
      },

      copy: function (clicks, text) {
        return navigator.clipboard.writeText(text || "").then(() => " copied", () => " select it and copy by hand");
      },
    },
  });

  /* Time since a setting was asked for, if it is long. */
  setInterval(function () {
    const place = document.getElementById("busy");
    if (!place) return;
    const waited = flying ? performance.now() - flying.sent : 0;
    const expected = slowest > 1000 ? `, of about ${(slowest / 1000).toFixed(0)} s` : "";
    const words = waited > 300 ? `computing: ${(waited / 1000).toFixed(1)} s${expected}` : "";
    if (place.textContent !== words) place.textContent = words;
    place.classList.toggle("on", waited > 300);
  }, 100);

  dark.addEventListener("change", () => poke(0));
  window.addEventListener("resize", () => poke(150));

  /* Milliseconds from the move of a slider to its line, read by tests. */
  document.addEventListener("input", function (event) {
    if (event.target.type === "range") moved = performance.now();
  }, true);
  new MutationObserver(function () {
    document.querySelectorAll(".js-plotly-plot").forEach(function (plot) {
      if (plot.dataset.timed || !plot.on) return;
      plot.dataset.timed = "1";
      plot.on("plotly_afterplot", function () {
        document.body.dataset.drawn = String(Number(document.body.dataset.drawn || 0) + 1);
      });
    });
  }).observe(document.documentElement, { childList: true, subtree: true });
})();
