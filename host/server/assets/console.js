// The console's own script: keeps the page fresh, and small conveniences. Every page works without it.
"use strict";
(() => {
  const PACE = 1000; // between two refreshes, in milliseconds
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
    if (source || document.hidden) return;
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
