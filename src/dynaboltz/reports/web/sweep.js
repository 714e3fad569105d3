"use strict";
// The sweep slider: value maps of two summaries sweep by sweep, their difference, and the certified band closing.
(() => {
  const root = document.getElementById("sweep");
  if (!root) return;
  const data = JSON.parse(document.getElementById("sweep-data").textContent);
  const part = (name) => root.querySelector(`[data-part="${name}"]`);
  const unpack = (text) => new Float32Array(Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer);
  const cells = data.states, rows = cells.length, cols = cells[0].length;
  const optimum = unpack(data.optimum), n = optimum.length;
  const traces = data.traces.map((trace) => ({ ...trace, values: unpack(trace.values) }));
  const at = (trace, sweep, state) => trace.values[sweep * trace.values.length / (data.sweeps + 1) + state];
  const PALETTE = ["#00224e", "#1a386f", "#434e6c", "#61656f", "#7d7c78", "#9b9476", "#bcae6c", "#dec958", "#fee838"];
  const SIZE = 20, HEIGHT = 250, LEFT = 46, RIGHT = 14, TOP = 12, BOTTOM = 36;
  const SIDES = ["left", "right"], COLOURS = ["var(--a)", "var(--b)"];
  let WIDTH = 640, timer = null, chosen = [0, 0];
  cells.forEach((line, r) => line.forEach((state, c) => { // at first the cell that is worth about a half
    const now = cells[chosen[0]][chosen[1]];
    if (state >= 0 && (now < 0 || Math.abs(optimum[state] - 0.5) < Math.abs(optimum[now] - 0.5))) chosen = [r, c];
  }));

  const show = (x) => {
    if (x === null || x === Infinity) return "∞";
    if (x === 0) return "0";
    const size = Math.abs(x);
    return (size >= 1e-3 && size < 1e4 ? String(Number(x.toPrecision(4))) : x.toExponential(1)).replace("-", "−");
  };
  const channel = (hex, i) => parseInt(hex.slice(1 + 2 * i, 3 + 2 * i), 16);
  const colour = (share) => {
    const place = Math.min(Math.max(share, 0), 1) * (PALETTE.length - 1), k = Math.min(Math.floor(place), PALETTE.length - 2);
    return `rgb(${[0, 1, 2].map((i) => Math.round(channel(PALETTE[k], i) + (place - k) * (channel(PALETTE[k + 1], i) - channel(PALETTE[k], i)))).join(",")})`;
  };
  const pair = () => SIDES.map((side) => traces[Number(part(side).value)]);

  // The three maps are made once; a sweep changes their colours.
  const make = (svg) => {
    svg.setAttribute("viewBox", `0 0 ${cols * SIZE} ${rows * SIZE}`);
    const hatch = `hatch-${svg.dataset.part}`;
    const bits = [`<pattern id="${hatch}" width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect width="5" height="5" fill="var(--paper)"/><rect width="1.6" height="5" fill="var(--soft)"/></pattern>`];
    cells.forEach((line, r) => line.forEach((state, c) => {
      bits.push(`<rect x="${c * SIZE}" y="${r * SIZE}" width="${SIZE}" height="${SIZE}" data-state="${state}" data-cell="${r},${c}" shape-rendering="crispEdges" ${state < 0 ? `fill="url(#${hatch})"` : ""}/>`);
    }));
    for (const [mark, place] of [["S", data.start], ["G", data.goal]]) {
      if (place) bits.push(`<text x="${(place[1] + 0.5) * SIZE}" y="${(place[0] + 0.5) * SIZE}" dy="4" text-anchor="middle" style="fill:#fff;stroke:#000;stroke-width:2.5px;paint-order:stroke;font-weight:700">${mark}</text>`);
    }
    bits.push(`<rect data-part="here" width="${SIZE}" height="${SIZE}" fill="none" stroke="#fff" stroke-width="2.5"/><rect data-part="here" width="${SIZE}" height="${SIZE}" fill="none" stroke="#d00" stroke-width="1.2"/>`);
    svg.innerHTML = bits.join("");
    svg.addEventListener("click", (event) => {
      const cell = event.target.dataset && event.target.dataset.cell;
      if (cell && Number(event.target.dataset.state) >= 0) { chosen = cell.split(",").map(Number); refresh(); }
    });
    svg.addEventListener("keydown", (event) => {
      const move = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
      if (!move) return;
      event.preventDefault();
      let [r, c] = chosen;
      do { r += move[0]; c += move[1]; } while (cells[r] && cells[r][c] < 0);
      if (cells[r] && cells[r][c] >= 0) { chosen = [r, c]; refresh(); }
    });
  };

  const paint = (svg, fill) => {
    for (const rect of svg.querySelectorAll("[data-state]")) {
      const state = Number(rect.dataset.state);
      if (state >= 0) fill(rect, state);
    }
    for (const here of svg.querySelectorAll('[data-part="here"]')) {
      here.setAttribute("x", chosen[1] * SIZE);
      here.setAttribute("y", chosen[0] * SIZE);
    }
  };

  const chart = (both, sweep, state) => {
    WIDTH = Math.max(300, part("chart").clientWidth || 640); // text keeps its size on a narrow screen
    part("chart").setAttribute("viewBox", `0 0 ${WIDTH} ${HEIGHT}`);
    const best = optimum[state], high = Math.max(1.25, 1.1 * Math.max(...both.map((t) => at(t, data.sweeps, state)))), low = -0.25;
    const x = (t) => LEFT + t / data.sweeps * (WIDTH - LEFT - RIGHT);
    const y = (v) => TOP + (high - Math.min(Math.max(v, low - 1), high + 1)) / (high - low) * (HEIGHT - TOP - BOTTOM);
    const bits = [`<clipPath id="sweep-clip"><rect x="${LEFT}" y="${TOP}" width="${WIDTH - LEFT - RIGHT}" height="${HEIGHT - TOP - BOTTOM}"/></clipPath>`];
    for (let v = 0; v <= high; v += high > 3 ? 1 : 0.25) bits.push(`<line x1="${LEFT}" x2="${WIDTH - RIGHT}" y1="${y(v)}" y2="${y(v)}" stroke="var(--line)"/><text x="${LEFT - 6}" y="${y(v)}" dy="4" text-anchor="end">${v}</text>`);
    for (let t = 0; t <= data.sweeps; t += 10) bits.push(`<text x="${x(t)}" y="${HEIGHT - BOTTOM + 16}" text-anchor="middle">${t}</text>`);
    bits.push(`<text class="faint" x="${(LEFT + WIDTH - RIGHT) / 2}" y="${HEIGHT - 4}" text-anchor="middle">sweep</text><g clip-path="url(#sweep-clip)">`);
    both.forEach((trace, k) => {
      const upper = [], lower = [], middle = [`${x(0)},${y(at(trace, 0, state))}`];
      for (let t = 1; t <= data.sweeps; t++) {
        const value = at(trace, t, state), bound = trace.bound[t - 1] ?? 1e9;
        upper.push(`${x(t).toFixed(1)},${y(value + bound).toFixed(1)}`);
        lower.unshift(`${x(t).toFixed(1)},${y(value - bound).toFixed(1)}`);
        middle.push(`${x(t).toFixed(1)},${y(value).toFixed(1)}`);
      }
      bits.push(`<polygon data-band="${SIDES[k]}" points="${upper.concat(lower).join(" ")}" fill="${COLOURS[k]}" opacity=".16"/>`
        + `<polyline points="${middle.join(" ")}" fill="none" stroke="${COLOURS[k]}" stroke-width="2"/>`);
    });
    bits.push(`<line x1="${LEFT}" x2="${WIDTH - RIGHT}" y1="${y(best)}" y2="${y(best)}" stroke="var(--ink)" stroke-dasharray="5 4"/>`
      + `<line x1="${x(sweep)}" x2="${x(sweep)}" y1="${TOP}" y2="${HEIGHT - BOTTOM}" stroke="var(--soft)"/>`);
    both.forEach((trace, k) => bits.push(`<circle cx="${x(sweep)}" cy="${y(at(trace, sweep, state))}" r="4.5" fill="${COLOURS[k]}" stroke="var(--panel)" stroke-width="1.5"/>`));
    bits.push(`</g><text x="${WIDTH - RIGHT - 4}" y="${y(best) - 5}" text-anchor="end">V*</text>`);
    part("chart").innerHTML = bits.join("");
    part("chart").setAttribute("aria-label", `Value of the chosen cell against sweeps with the certified band; at sweep ${sweep}: `
      + both.map((trace) => `${trace.name} ${show(at(trace, sweep, state))}`).join(", ") + `; V* is ${show(best)}.`);
  };

  const refresh = () => {
    const sweep = Number(part("slider").value), both = pair(), state = cells[chosen[0]][chosen[1]];
    part("shown").textContent = String(sweep);
    part("slider").setAttribute("aria-valuetext", `sweep ${sweep}`);
    let top = 1e-9, apart = 0;
    for (let s = 0; s < n; s++) {
      top = Math.max(top, at(both[0], sweep, s), at(both[1], sweep, s), optimum[s]);
      apart = Math.max(apart, Math.abs(at(both[0], sweep, s) - at(both[1], sweep, s)));
    }
    SIDES.forEach((side, k) => {
      const svg = part(`map-${side}`);
      paint(svg, (rect, s) => rect.setAttribute("fill", colour(at(both[k], sweep, s) / top)));
      svg.setAttribute("aria-label", `Map of ${both[k].name} after sweep ${sweep}: values up to ${show(top)}. Arrow keys choose a cell.`);
      part(`name-${side}`).textContent = both[k].name;
    });
    paint(part("map-difference"), (rect, s) => {
      const gap = at(both[0], sweep, s) - at(both[1], sweep, s);
      rect.setAttribute("fill", gap >= 0 ? "var(--a)" : "var(--b)");
      rect.setAttribute("fill-opacity", apart > 0 ? (0.04 + 0.96 * Math.abs(gap) / apart).toFixed(3) : "0.04");
    });
    part("map-difference").setAttribute("aria-label", `Difference of the two maps, at most ${show(apart)} in any cell. Arrow keys choose a cell.`);
    part("apart").textContent = show(apart);
    part("cell").textContent = `row ${chosen[0] + 1}, column ${chosen[1] + 1}, V* = ${show(optimum[state])}`;
    part("rows").innerHTML = both.map((trace, k) => {
      const bound = sweep ? trace.bound[sweep - 1] : Infinity, loss = sweep ? trace.loss[sweep - 1] : Math.max(...optimum);
      const value = at(trace, sweep, state), beta = sweep ? trace.beta[sweep - 1] : null;
      return `<tr data-side="${SIDES[k]}" data-value="${value}" data-bound="${bound}" data-loss="${loss}">`
        + `<th scope="row"><span class="swatch" style="background:${COLOURS[k]}"></span><span data-name></span></th>`
        + `<td class="number">${sweep ? show(beta) : "–"}</td><td class="number">${show(value)}</td>`
        + `<td class="number">${show(loss)}</td><td class="number">${sweep ? show(bound) : "–"}</td></tr>`;
    }).join("");
    part("rows").querySelectorAll("[data-name]").forEach((name, k) => { name.textContent = both[k].name; });
    chart(both, sweep, state);
  };

  const stop = () => { clearInterval(timer); timer = null; part("play").textContent = "Play"; };
  part("play").addEventListener("click", () => {
    if (timer) { stop(); return; }
    const slider = part("slider");
    if (Number(slider.value) >= data.sweeps) slider.value = 0;
    part("play").textContent = "Pause";
    timer = setInterval(() => {
      slider.value = Number(slider.value) + 1;
      refresh();
      if (Number(slider.value) >= data.sweeps) stop();
    }, 200);
  });

  SIDES.forEach((side, k) => {
    part(side).replaceChildren(...traces.map((trace, i) => new Option(trace.name, String(i))));
    part(side).value = String(Math.min(k === 0 ? 1 : 3, traces.length - 1));
    part(side).addEventListener("change", refresh);
  });
  part("slider").max = String(data.sweeps);
  part("slider").addEventListener("input", () => { if (timer) stop(); refresh(); });
  for (const side of [...SIDES, "difference"]) make(part(`map-${side}`));
  addEventListener("resize", refresh);
  refresh();
})();
