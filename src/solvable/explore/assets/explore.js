"use strict";
/* What runs in the page: sliders and their numbers, one request at a time, the address. */
(function () {
  const same = () => window.dash_clientside.no_update;
  const page = Array.from(crypto.getRandomValues(new Uint32Array(3)), (n) => n.toString(36)).join("");
  const patience = 400; /* milliseconds after which a newer setting is sent without an answer */
  const calm = 500; /* milliseconds without a move after which a line is completed */
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const config = { displaylogo: false, responsive: true, modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"] };
  let wanted = null; /* what the controls show */
  let controls = {};
  let number = 0;
  let flying = null;
  let shown = 0; /* number of the request whose figures are shown */
  let last = null;
  let stage = 0;
  let complete = true;
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
    waiting = setTimeout(attempt, after);
  }

  function look() {
    const place = document.querySelector(".figures");
    wanted.width = place ? 20 * Math.floor(place.clientWidth / 20) : 800;
    wanted.dark = dark.matches;
  }

  /* Ask for the newest setting, or for more of its line; wait for an answer that is due soon. */
  function attempt() {
    if (!wanted) return;
    look();
    const key = JSON.stringify(wanted);
    const fresh = key !== last;
    if (flying) {
      /* A request for more of a line that is shown never holds up a new setting. */
      const left = fresh ? (flying.stage > 0 ? 0 : patience - (performance.now() - flying.sent)) : Infinity;
      if (left > 0) {
        if (fresh) poke(Math.max(20, left));
        return;
      }
    }
    if (!fresh && (complete || stage >= 12)) return;
    stage = fresh ? 0 : stage + 1;
    last = key;
    number += 1;
    send({ n: number, sent: performance.now(), stage: stage, moved: fresh ? moved : 0 });
  }

  async function send(request) {
    flying = request;
    const text = JSON.stringify(Object.assign({ page: page, n: request.n, stage: request.stage }, wanted));
    let answer = null;
    try {
      const limit = AbortSignal.timeout(Math.max(60000, 3 * slowest));
      const head = { "Content-Type": "application/json" };
      const got = await fetch("draw", { method: "POST", body: text, headers: head, signal: limit });
      if (!got.ok) throw new Error(`status ${got.status}`);
      answer = got.status === 204 ? null : await got.json();
      /* An older line than the newest one is shown while that one is computed. */
      if (answer && answer.n > shown) await show(answer);
    } catch (error) {
      if (flying !== request) return;
      flying = null;
      last = null;
      write("problem", `No answer from the page server (${error.message}); trying again.`);
      poke(2000);
      return;
    }
    if (flying !== request) return;
    flying = null;
    if (!answer) { /* another page has asked for something newer */
      last = null;
      return poke(2000);
    }
    slowest = performance.now() - request.sent;
    complete = answer.complete;
    if (request.stage === 0 && request.moved) painted(request.moved);
    poke(JSON.stringify(wanted) !== last || stage > 0 ? 0 : calm);
  }

  function write(name, words) {
    const place = document.getElementById(name);
    if (place && place.textContent !== words) window.dash_clientside.set_props(name, { children: words });
  }

  function script() {
    if (window.Plotly) return Promise.resolve();
    return new Promise(function (go, stop) {
      const element = document.getElementById("plotly");
      element.addEventListener("load", () => go());
      element.addEventListener("error", () => stop(new Error("Plotly's script is missing")));
    });
  }

  async function show(answer) {
    await script();
    if (answer.n <= shown) return;
    shown = answer.n;
    const slots = document.querySelectorAll(".figures figure");
    slots.forEach(function (slot, k) {
      const figure = answer.figures[k];
      slot.hidden = !figure;
      if (!figure) return;
      const [place, title, caption] = [".plot", "h2", "figcaption"].map((name) => slot.querySelector(name));
      if (title.textContent !== figure.title) title.textContent = figure.title;
      if (caption.textContent !== figure.caption) caption.textContent = figure.caption;
      place.style.height = `${figure.layout.height}px`;
      const first = !place.data;
      window.Plotly.react(place, figure.data, figure.layout, config).then(drawn);
      if (first) place.on("plotly_afterplot", drawn);
    });
    ["problem", "remark", "command", "python"].forEach((name) => write(name, answer[name]));
  }

  function drawn() {
    document.body.dataset.drawn = String(Number(document.body.dataset.drawn || 0) + 1);
  }

  function rounded(value, one) {
    if (one.integer) return Math.round(value);
    return Number(value.toPrecision(one.log ? 3 : 6));
  }

  function valueAt(position, one) {
    const part = position / one.positions;
    if (position <= 0) return one.integer ? Math.ceil(one.low) : one.low;
    if (part >= 1) return one.integer ? Math.floor(one.high) : one.high;
    if (one.log) return rounded(one.first * Math.pow(one.high / one.first, part), one);
    return rounded(one.low + part * (one.high - one.low), one);
  }

  function positionOf(value, one) {
    if (value <= one.low) return 0;
    const part = one.log ? Math.log(value / one.first) / Math.log(one.high / one.first)
      : (value - one.low) / (one.high - one.low);
    return Math.round(one.positions * Math.max(0, Math.min(1, part || 0)));
  }

  /* Write the setting into the address. */
  function keep(specification) {
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

      ask: function (panel, points, fresh, ...values) {
        const specification = values.pop();
        const named = {};
        specification.names.forEach((name, k) => { named[name] = values[k] === undefined ? null : values[k]; });
        wanted = { values: named, panel: panel, points: points, fresh: fresh };
        controls = specification.controls;
        keep(specification);
        attempt();
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

  /* A moved slider is asked for at once; Dash brings the same value to "ask" a little later. */
  document.addEventListener("input", function (event) {
    if (event.target.type !== "range") return;
    moved = performance.now(); /* milliseconds from the move to its line are read by tests */
    const name = event.target.id.slice("position-".length);
    if (!wanted || !controls[name]) return;
    wanted.values[name] = valueAt(Number(event.target.value), controls[name]);
    attempt();
  }, true);
})();
