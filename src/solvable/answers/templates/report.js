"use strict";
/* Replace each picture by its interactive drawing; what cannot be drawn stays a picture. */
(function () {
  const drawings = JSON.parse(document.getElementById("drawings").textContent);
{% include "figure_layout.js" %}

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
