"use strict";
// Curves of numbers by steps: as many bins as there are pixels to see, the mean of each as a line, its range as a band.
const Curves = (() => {
  const SVG = "http://www.w3.org/2000/svg";
  const LEFT = 56, RIGHT = 12, TOP = 8, BOTTOM = 26, PIXELS = 3, PIXELS_OF_BAND = 8, DOTS = 40;
  const FLATTEST = 2e-3;  // the least range, beside the values: less would be rounding, in labels too long for their place
  const SUPERSCRIPT = Object.fromEntries([..."-0123456789"].map((digit, i) => [digit, [..."⁻⁰¹²³⁴⁵⁶⁷⁸⁹"][i]]));

  const make = (tag, attributes = {}, ...children) => {
    const node = tag.startsWith("svg:") ? document.createElementNS(SVG, tag.slice(4)) : document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    node.append(...children);
    return node;
  };

  const powered = (x) => {
    const [mantissa, exponent] = x.toExponential(2).split("e");
    return [Number(mantissa), `10${[...exponent.replace("+", "")].map((digit) => SUPERSCRIPT[digit]).join("")}`];
  };
  // A number to read.
  const show = (x) => {
    if (x === null || x === undefined || !Number.isFinite(x)) return "–";
    if (Number.isInteger(x) && Math.abs(x) < 1e6) return x.toLocaleString("en").replace("-", "−");
    const size = Math.abs(x);
    if (size === 0 || (size >= 1e-3 && size < 1e6)) return Number(x.toPrecision(4)).toLocaleString("en", { maximumFractionDigits: 9 }).replace("-", "−");
    const [mantissa, power] = powered(x);
    return `${mantissa} × ${power}`.replace("-", "−");
  };
  // A tick's number, with as many digits as tell it from its neighbours.
  const brief = (x, step) => {
    const size = Math.abs(x), digits = size ? Math.min(12, Math.max(1, Math.floor(Math.log10(size) + 1e-9) - Math.floor(Math.log10(step) + 1e-9) + 1)) : 1;
    if (size >= 1e12 || (size && size < 1e-5)) {
      const [mantissa, power] = powered(x);
      return `${mantissa === 1 ? "" : mantissa === -1 ? "-" : `${mantissa}·`}${power}`.replace("-", "−");
    }
    const [unit, letter] = [[1e9, "G"], [1e6, "M"], [1e3, "k"]].find(([least]) => size >= least) ?? [1, ""];
    return `${Number((x / unit).toPrecision(digits)).toLocaleString("en", { maximumFractionDigits: 9 })}${letter}`.replace("-", "−");
  };

  const ticks = (low, high, count) => {
    const found = spaced(low, high, count);
    return found.length > 1 ? found : spaced(low, high, 2 * count);
  };
  const spaced = (low, high, count) => {
    const rough = (high - low) / count, power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((k) => k * power).find((k) => k >= rough * 0.999);
    const found = [];
    for (let k = Math.ceil(low / step); k * step <= high * (1 + 1e-12) && found.length < 20; k++) found.push(k * step);
    return found;
  };
  const apart = (found) => found.length > 1 ? found[1] - found[0] : Math.abs(found[0]) || 1;
  const decades = (low, high) => {
    const first = Math.ceil(low), last = Math.floor(high), stride = Math.max(1, Math.ceil((last - first) / 4));
    return Array.from({ length: Math.max(0, Math.floor((last - first) / stride) + 1) }, (_, i) => first + i * stride);
  };

  // Bins of a series by steps: [middle, mean, low, high] of each that has something in it.
  const bins = ({ steps, values }, until, count) => {
    const found = [];
    let at = -1, sum = 0, number = 0, low = 0, high = 0, last = 0;
    const close = () => { if (number) found.push([number === 1 ? last : (at + 0.5) * until / count, sum / number, low, high]); };
    for (let i = 0; i < steps.length; i++) {
      const value = values[i];
      if (value === null) continue;
      const bin = Math.min(count - 1, Math.floor(steps[i] / until * count));
      if (bin !== at) { close(); at = bin; sum = number = 0; low = Infinity; high = -Infinity; }
      sum += value; number += 1; last = steps[i];
      if (value < low) low = value;
      if (value > high) high = value;
    }
    close();
    return found;
  };

  class Panel {
    // series: name → { steps, values, colour, band, dots }
    constructor({ name, title, hint, series, log = false, first = false }) {
      Object.assign(this, { title, series, log });
      this.output = make("output");
      this.svg = make("svg:svg", { role: "img", "aria-label": title });
      this.height = first ? 250 : 170;
      const several = Object.keys(series).length > 1;
      const legend = several ? [make("p", { class: "legend" }, ...Object.entries(series).map(([label, one]) =>
        make("span", {}, make("span", { class: `swatch ${one.colour}` }), `${label} `, make("b"))))] : hint ? [make("p", {}, hint)] : [];
      this.told = several ? [...legend[0].querySelectorAll("b")] : [this.output];
      this.node = make("section", { class: first ? "panel first" : "panel", "data-panel": name }, make("h3", {}, make("span", {}, title), this.output), ...legend, this.svg);
      this.svg.addEventListener("pointermove", (event) => this.point(event));
      this.svg.addEventListener("pointerleave", () => { this.pointed = null; this.tell(); });
    }

    get empty() { return Object.values(this.series).every(({ values }) => !values.some((value) => value !== null)); }

    draw(until) {
      if (this.empty || !this.node.isConnected) return;
      const width = this.width = Math.max(240, this.svg.clientWidth || 300), height = this.height;
      this.until = until = Math.max(until, 1);
      const count = (pixels) => Math.max(20, Math.floor((width - LEFT - RIGHT) / pixels));
      this.binned = Object.values(this.series).map((one) => ({ ...one, bins: bins(one, until, count(one.band ? PIXELS_OF_BAND : PIXELS)) }));
      let low = Infinity, high = -Infinity;
      for (const { bins: found, band } of this.binned) for (const [, mean, least, most] of found) {
        low = Math.min(low, band ? least : mean); high = Math.max(high, band ? most : mean);
      }
      const logarithmic = this.log && low > 0 && high / low > 50, scale = logarithmic ? Math.log10 : (value) => value;
      [low, high] = [scale(low), scale(high)];
      const least = logarithmic ? 0 : FLATTEST * Math.max(Math.abs(low), Math.abs(high));
      const pad = high > low ? Math.max((high - low) * 0.06, (least - (high - low)) / 2) : Math.abs(high) * 0.1 || 1;
      low -= pad; high += pad;
      const x = (step) => LEFT + step / until * (width - LEFT - RIGHT);
      const y = (value) => TOP + (high - scale(value)) / (high - low) * (height - TOP - BOTTOM);
      const parts = [];
      const levels = logarithmic ? decades(low, high) : ticks(low, high, 4), places = ticks(0, until, width > 500 ? 6 : 3);
      for (const tick of levels) {
        const value = logarithmic ? 10 ** tick : tick, at = y(value).toFixed(1);
        parts.push(make("svg:line", { x1: LEFT, x2: width - RIGHT, y1: at, y2: at, stroke: "var(--line)" }));
        parts.push(make("svg:text", { x: LEFT - 6, y: at, dy: 4, "text-anchor": "end" }, brief(value, logarithmic ? value : apart(levels))));
      }
      for (const tick of places) {
        parts.push(make("svg:text", { class: "faint", x: x(tick).toFixed(1), y: height - 8, "text-anchor": tick > 0.93 * until ? "end" : "middle" }, brief(tick, apart(places))));
      }
      for (const { bins: found, colour, band, dots } of this.binned) {
        if (!found.length) continue;
        const points = (index) => found.map((bin) => `${x(bin[0]).toFixed(1)},${y(bin[index]).toFixed(1)}`);
        if (band) parts.push(make("svg:polygon", { points: [...points(3), ...points(2).reverse()].join(" "), fill: `var(--${colour})`, "fill-opacity": 0.16 }));
        parts.push(make("svg:polyline", { points: points(1).join(" "), fill: "none", stroke: `var(--${colour})`, "stroke-width": 1.8, "stroke-linejoin": "round" }));
        if (found.length === 1 || (dots && found.length <= DOTS)) for (const place of points(1)) {
          const [cx, cy] = place.split(",");
          parts.push(make("svg:circle", { cx, cy, r: 3, fill: `var(--${colour})` }));
        }
      }
      this.cross = make("svg:line", { y1: TOP, y2: height - BOTTOM, stroke: "currentColor", "stroke-dasharray": "2 3", visibility: "hidden" });
      this.svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
      this.svg.replaceChildren(...parts, this.cross);
      this.tell();
    }

    point(event) {
      const box = this.svg.getBoundingClientRect();
      this.pointed = Math.min(1, Math.max(0, ((event.clientX - box.x) / box.width * this.width - LEFT) / (this.width - LEFT - RIGHT))) * this.until;
      this.tell();
    }

    // The numbers at the pointer, or the last ones.
    tell() {
      const at = this.pointed ?? null;
      this.cross?.setAttribute("visibility", at === null ? "hidden" : "visible");
      const bins = this.binned.map((one) => at === null ? one.bins[one.bins.length - 1]
        : one.bins.reduce((best, next) => best && Math.abs(best[0] - at) <= Math.abs(next[0] - at) ? best : next, null));
      if (at !== null) {
        const place = LEFT + at / this.until * (this.width - LEFT - RIGHT);
        this.cross.setAttribute("x1", place); this.cross.setAttribute("x2", place);
      }
      const step = at === null ? "" : `at step ${show(Math.round((bins.find(Boolean) ?? [at])[0]))}`, values = bins.map((bin) => bin ? show(bin[1]) : "");
      if (values.length > 1) this.output.textContent = step;
      this.told.forEach((place, i) => { place.textContent = values.length > 1 ? values[i] : `${values[i]} ${step}`; });
      if (at === null) this.svg.setAttribute("aria-label", `${this.title}: ${values.filter(Boolean).join(", ")} by step ${show(Math.round(this.until))}`);
    }
  }
  return { Panel, make, show };
})();
