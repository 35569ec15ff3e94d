// The console's own script: keeps the page fresh, and small conveniences. Every page works without it.
"use strict";
(() => {
  const PACE = 1000; // between two refreshes, in milliseconds
  const SPAN = 600; // of the chart, in seconds
  const POLL = 15000; // when there is no stream
  let source = null;
  let poll = 0;
  let later = 0;
  let busy = false;
  let last = 0;

  const live = () => document.getElementById("live");

  function address() {
    const url = new URL(location.href);
    url.searchParams.delete("note");
    return url.pathname + url.search;
  }

  // Rows must not move while somebody picks from them, nor a list of choices close.
  function isInUse() {
    const focused = document.activeElement;
    return (
      live().querySelector("input[data-pick]:checked") !== null ||
      (focused instanceof HTMLSelectElement && live().contains(focused))
    );
  }

  function refresh() {
    if (document.hidden || later || !live()) return;
    const wait = last + PACE - Date.now();
    if (busy || wait > 0) {
      later = setTimeout(() => { later = 0; refresh(); }, Math.max(wait, 100));
      return;
    }
    if (isInUse()) return;
    busy = true;
    last = Date.now();
    htmx
      .ajax("GET", address(), {
        target: "#live", select: "#live", swap: "outerMorph", selectOOB: "#top:outerMorph",
      })
      .catch(() => {})
      .finally(() => { busy = false; });
  }

  function show(word, kind) {
    const pulse = document.getElementById("pulse");
    if (!pulse) return;
    pulse.hidden = false;
    pulse.textContent = word;
    pulse.className = "pulse " + kind;
  }

  function open() {
    // Where there is nothing of the host there is nothing to keep fresh: a page of errors, the login.
    if (source || document.hidden || !document.querySelector("main[data-live]")) return;
    source = new EventSource("/live");
    source.addEventListener("open", () => { show("live", "on"); });
    source.addEventListener("changed", refresh);
    source.addEventListener("error", () => {
      show("not connected", "off");
      // A stream that was refused does not come back by itself.
      if (source && source.readyState === EventSource.CLOSED) {
        source = null;
        poll = poll || setTimeout(() => { poll = 0; refresh(); open(); }, POLL);
      }
    });
  }

  function close() {
    if (source) source.close();
    source = null;
  }

  // A page that nobody sees takes none of the browser's few connections.
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) close();
    else { refresh(); open(); }
  });
  addEventListener("pagehide", close);
  addEventListener("pageshow", open);

  // What cannot be undone waits for the words that confirm it. The host looks again.
  function weigh(input) {
    const wrong = input.value.trim() !== input.dataset.confirm;
    input.form.querySelectorAll("button[data-confirmed]").forEach((button) => { button.disabled = wrong; });
  }
  document.addEventListener("input", (event) => {
    if (event.target.matches("input[data-confirm]")) weigh(event.target);
  });
  document.querySelectorAll("input[data-confirm]").forEach(weigh);

  // What was put and what left: drawn over the lines that came with the page.
  let chart = null;
  function draw(anew) {
    const place = document.getElementById("chart");
    const given = document.getElementById("chart-points");
    if (!place || !given || typeof uPlot === "undefined") return;
    const points = JSON.parse(given.dataset.points);
    if (chart && !anew && place.contains(chart.root)) {
      chart.setData(points);
      return;
    }
    const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
    const rate = (plot, value) => (value == null ? "–" : value.toFixed(1) + "/s");
    const dots = { show: points[0].length < 2 };
    const axis = { stroke: colour("--muted"), grid: { stroke: colour("--soft"), width: 1 }, ticks: { stroke: colour("--soft") } };
    place.replaceChildren();
    chart = new uPlot({
      width: place.clientWidth,
      height: 160,
      cursor: { drag: { x: false, y: false } },
      tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), "UTC"),
      axes: [{ ...axis, values: "{HH}:{mm}", space: 70 }, { ...axis, size: 52 }, { ...axis, size: 58, side: 1, scale: "depth", grid: { show: false } }],
      scales: { x: { range: (plot, first, last) => [last - SPAN, last] }, y: { range: (plot, low, high) => [0, Math.max(high, 1)] }, depth: { range: (plot, low, high) => [0, Math.max(high, 1)] } },
      series: [
        { label: "at", value: "{HH}:{mm}:{ss}" },
        { label: "put", stroke: colour("--put"), width: 1.5, value: rate, points: dots },
        { label: "left", stroke: colour("--left"), width: 1.5, value: rate, points: dots },
        { label: "depth", stroke: colour("--muted"), width: 1, dash: [4, 3], scale: "depth", points: { show: false } },
      ],
    }, points, place);
  }
  document.addEventListener("htmx:after:swap", () => draw(false));
  addEventListener("resize", () => { if (chart) chart.setSize({ width: document.getElementById("chart").clientWidth, height: 160 }); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => draw(true));
  draw(true);

  // One box that ticks all of a list; without script there is none.
  function offer(box) { box.hidden = false; }
  document.querySelectorAll("input[data-pick-all]").forEach(offer);
  document.addEventListener("change", (event) => {
    if (!event.target.matches("input[data-pick-all]")) return;
    event.target.closest("form").querySelectorAll("input[data-pick]").forEach((box) => { box.checked = event.target.checked; });
  });

  // A notice is for once.
  if (new URL(location.href).searchParams.has("note")) history.replaceState(null, "", address());

  open();
})();
