"use strict";
// The operator lens: what max, Boltzmann, log-sum-exp and mellowmax make of a row of values as β changes.
(() => {
  const root = document.getElementById("lens");
  if (!root) return;
  const part = (name) => root.querySelector(`[data-part="${name}"]`);
  const LAST = 300, LOW = -2, DECADES = 5, MOST = 12;
  const HEIGHT = 270, LEFT = 46, RIGHT = 24, TOP = 12, BOTTOM = 36;
  let WIDTH = 640;

  // Slider position → β: 0 and ∞ at the ends, a logarithmic scale between.
  const betaAt = (position) => position <= 0 ? 0 : position >= LAST ? Infinity : 10 ** (LOW + DECADES * (position - 1) / (LAST - 2));

  // Lambert's W on x ≥ 0, by Halley's iteration.
  const lambertW = (x) => {
    let w = Math.log1p(x);
    for (let i = 0; i < 40; i++) {
      const e = Math.exp(w), f = w * e - x, step = f / (e * (w + 1) - (w + 2) * f / (2 * w + 2));
      w -= step;
      if (Math.abs(step) <= 1e-15 * (1 + Math.abs(w))) break;
    }
    return w;
  };

  const weights = (q, beta) => {
    const top = Math.max(...q);
    const e = q.map((value) => value === top ? 1 : Math.exp(beta * (value - top)));
    const sum = e.reduce((a, b) => a + b, 0);
    return e.map((value) => value / sum);
  };
  const average = (q, by) => { const top = Math.max(...q); return top + q.reduce((sum, value, i) => sum + by[i] * (value - top), 0); };
  const uniform = (q) => q.map(() => 1 / q.length);
  const excess = (q, beta) => { // log Σ e^{β (q − max)}
    const top = Math.max(...q);
    return Math.log(q.reduce((sum, value) => sum + (value === top ? 1 : Math.exp(beta * (value - top))), 0));
  };
  const over = (constant, beta) => constant === 0 ? 0 : constant / beta;

  // Each operator: its value, and how far it can be from the maximum; side −1 is below it, 1 above.
  const OPERATORS = [
    { name: "max", colour: "var(--ink)", dash: "5 4", side: -1, formula: "0", value: (q) => Math.max(...q), bound: () => 0 },
    { name: "Boltzmann", colour: "var(--a)", side: -1, formula: "W((m−1)/e)/β",
      value: (q, beta) => average(q, weights(q, beta)), bound: (m, beta) => over(lambertW((m - 1) / Math.E), beta) },
    { name: "log-sum-exp", colour: "var(--b)", side: 1, formula: "log(m)/β",
      value: (q, beta) => Math.max(...q) + (beta === Infinity ? 0 : over(excess(q, beta), beta)), bound: (m, beta) => over(Math.log(m), beta) },
    { name: "mellowmax", colour: "var(--c)", side: -1, formula: "log(m)/β",
      value: (q, beta) => beta === 0 ? average(q, uniform(q)) : beta === Infinity ? Math.max(...q)
        : Math.max(...q) + (excess(q, beta) - Math.log(q.length)) / beta, bound: (m, beta) => over(Math.log(m), beta) },
  ];

  const START = [0, 1, 3];
  let values = START.slice();

  const show = (x) => {
    if (x === Infinity) return "∞";
    if (x === 0) return "0";
    const size = Math.abs(x);
    return (size >= 1e-3 && size < 1e4 ? String(Number(x.toPrecision(4))) : x.toExponential(2)).replace("-", "−");
  };

  const line = (beta, low, high) => { // places on the chart
    const x = beta === 0 ? LEFT : beta === Infinity ? WIDTH - RIGHT : LEFT + (Math.log10(beta) - LOW) / DECADES * (WIDTH - LEFT - RIGHT);
    return { x, y: (v) => TOP + (high - Math.min(Math.max(v, low - (high - low)), high + (high - low))) / (high - low) * (HEIGHT - TOP - BOTTOM) };
  };

  const ticks = (low, high) => {
    const rough = (high - low) / 4, power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((k) => k * power).find((k) => k >= rough);
    const found = [];
    for (let k = Math.ceil(low / step); k * step <= high; k++) found.push(k * step);
    return found;
  };

  const chart = (beta) => {
    WIDTH = Math.max(300, part("chart").clientWidth || 640); // text keeps its size on a narrow screen
    part("chart").setAttribute("viewBox", `0 0 ${WIDTH} ${HEIGHT}`);
    const top = Math.max(...values), bottom = Math.min(...values), span = top - bottom || 1;
    const low = bottom - 0.12 * span, high = top + 0.55 * span;
    const bits = [`<clipPath id="lens-clip"><rect x="${LEFT}" y="${TOP}" width="${WIDTH - LEFT - RIGHT}" height="${HEIGHT - TOP - BOTTOM}"/></clipPath>`];
    const at = line(1, low, high);
    for (const value of ticks(low, high)) {
      const y = at.y(value).toFixed(1);
      bits.push(`<line x1="${LEFT}" x2="${WIDTH - RIGHT}" y1="${y}" y2="${y}" stroke="var(--line)"/><text x="${LEFT - 6}" y="${y}" dy="4" text-anchor="end">${show(Number(value.toPrecision(6)))}</text>`);
    }
    for (let k = LOW; k <= LOW + DECADES; k++) {
      const x = line(10 ** k, low, high).x;
      bits.push(`<text x="${x}" y="${HEIGHT - BOTTOM + 16}" text-anchor="middle">${k < 0 ? String(10 ** k) : (10 ** k).toLocaleString("en")}</text>`);
    }
    bits.push(`<text class="faint" x="${(LEFT + WIDTH - RIGHT) / 2}" y="${HEIGHT - 4}" text-anchor="middle">β</text>`);
    const steps = Array.from({ length: 121 }, (_, i) => 10 ** (LOW + DECADES * i / 120));
    const m = values.length;
    const floor = steps.map((b) => `${line(b, low, high).x.toFixed(1)},${at.y(top - OPERATORS[1].bound(m, b)).toFixed(1)}`);
    bits.push(`<g clip-path="url(#lens-clip)"><polygon points="${LEFT},${at.y(top).toFixed(1)} ${floor.join(" ")} ${WIDTH - RIGHT},${at.y(top).toFixed(1)}" fill="var(--a)" opacity=".13"/>`);
    for (const op of OPERATORS.slice().reverse()) {
      const points = steps.map((b) => `${line(b, low, high).x.toFixed(1)},${at.y(op.value(values, b)).toFixed(1)}`).join(" ");
      bits.push(`<polyline points="${points}" fill="none" stroke="${op.colour}" stroke-width="2" ${op.dash ? `stroke-dasharray="${op.dash}"` : ""}/>`);
    }
    const here = line(beta, low, high).x.toFixed(1);
    bits.push(`<line x1="${here}" x2="${here}" y1="${TOP}" y2="${HEIGHT - BOTTOM}" stroke="var(--soft)"/>`);
    for (const op of OPERATORS.slice().reverse()) {
      const value = op.value(values, beta);
      if (value < high) bits.push(`<circle cx="${here}" cy="${at.y(value).toFixed(1)}" r="4.5" fill="${op.colour}" stroke="var(--panel)" stroke-width="1.5"/>`);
    }
    bits.push("</g>");
    part("chart").innerHTML = bits.join("");
    part("chart").setAttribute("aria-label", `Value against β for the row ${values.join(", ")}. At β = ${show(beta)}: `
      + OPERATORS.map((op) => `${op.name} ${show(op.value(values, beta))}`).join(", ") + ".");
  };

  const table = (beta) => {
    const top = Math.max(...values), m = values.length;
    part("rows").innerHTML = OPERATORS.map((op) => {
      const value = op.value(values, beta), gap = Math.abs(top - value), bound = op.bound(m, beta);
      const where = gap === 0 ? "" : op.side < 0 ? " below" : " above";
      return `<tr data-operator="${op.name}" data-value="${value}" data-gap="${gap}" data-bound="${bound}">`
        + `<th scope="row"><span class="swatch" style="background:${op.colour}"></span>${op.name}</th>`
        + `<td class="number">${show(value)}</td><td class="number">${show(gap)}${where}</td>`
        + `<td class="number">${show(bound)}</td><td class="extra">${op.formula}</td></tr>`;
    }).join("");
  };

  const refresh = () => {
    const slider = part("beta"), beta = betaAt(Number(slider.value));
    part("shown").textContent = show(beta);
    slider.setAttribute("aria-valuetext", `β = ${show(beta)}`);
    weights(values, beta === Infinity ? 1e300 : beta).forEach((weight, i) => {
      const bar = part("values").children[i].querySelector(".bar");
      bar.firstElementChild.style.width = `${100 * weight}%`;
      part("values").children[i].querySelector("[data-weight]").textContent = `${(100 * weight).toFixed(1)} %`;
    });
    part("paper").textContent = show(over(Math.log(values.length), beta));
    table(beta);
    chart(beta);
  };

  const build = () => {
    part("values").replaceChildren(...values.map((value, i) => {
      const box = document.createElement("div");
      box.innerHTML = `<label>value ${i + 1}<input type="number" step="any" value="${value}"></label>`
        + `<div class="bar"><span></span></div><span class="soft" style="font-size:.78rem">weight <span data-weight></span></span>`;
      box.querySelector("input").addEventListener("input", (event) => {
        const number = event.target.valueAsNumber;
        event.target.setAttribute("aria-invalid", String(!(Math.abs(number) <= 1e9)));
        if (Math.abs(number) <= 1e9) { values[i] = number; refresh(); }
      });
      return box;
    }));
    part("add").disabled = values.length >= MOST;
    part("remove").disabled = values.length <= 1;
    refresh();
  };

  part("beta").addEventListener("input", refresh);
  part("add").addEventListener("click", () => { values.push(values[values.length - 1]); build(); });
  part("remove").addEventListener("click", () => { values.pop(); build(); });
  part("reset").addEventListener("click", () => { values = START.slice(); build(); });
  part("worst").addEventListener("click", () => { // equality in the bound: one maximum, m − 1 values lower by u*/β
    const beta = betaAt(Number(part("beta").value)), m = Math.max(values.length, 2);
    if (beta === 0 || beta === Infinity) return;
    const lower = -(1 + lambertW((m - 1) / Math.E)) / beta;
    values = [0, ...Array(m - 1).fill(lower)];
    build();
  });
  addEventListener("resize", refresh);
  build();
})();
