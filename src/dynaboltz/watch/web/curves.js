"use strict";
// Curves of numbers by steps: as many bins as there are pixels to see, the mean of each as a line, its range as a band.
const Curves = (() => {
  const SVG = "http://www.w3.org/2000/svg";
  const LEFT = 52, RIGHT = 12, TOP = 8, BOTTOM = 26, PIXELS = 3, PIXELS_OF_BAND = 8, DOTS = 40;
  const SUPERSCRIPT = Object.fromEntries([..."-0123456789"].map((digit, i) => [digit, [..."⁻⁰¹²³⁴⁵⁶⁷⁸⁹"][i]]));

  const make = (tag, attributes = {}, ...children) => {
    const node = tag.startsWith("svg:") ? document.createElementNS(SVG, tag.slice(4)) : document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    node.append(...children);
    return node;
  };

  // A number to read.
  const show = (x) => {
    if (x === null || x === undefined || !Number.isFinite(x)) return "–";
    if (Number.isInteger(x) && Math.abs(x) < 1e6) return x.toLocaleString("en").replace("-", "−");
    const size = Math.abs(x);
    if (size === 0 || (size >= 1e-3 && size < 1e6)) return Number(x.toPrecision(4)).toLocaleString("en", { maximumFractionDigits: 9 }).replace("-", "−");
    const [mantissa, exponent] = x.toExponential(2).split("e");
    return `${Number(mantissa)} × 10${[...exponent.replace("+", "")].map((digit) => SUPERSCRIPT[digit]).join("")}`.replace("-", "−");
  };
  const brief = (x) => {
    const size = Math.abs(x);
    for (const [unit, letter] of [[1e9, "G"], [1e6, "M"], [1e3, "k"]]) if (size >= unit) return `${show(Number((x / unit).toPrecision(3)))}${letter}`;
    return show(Number(x.toPrecision(6)));
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
        make("span", {}, make("span", { class: `swatch ${one.colour}` }), label)))] : hint ? [make("p", {}, hint)] : [];
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
      const pad = (high - low) * 0.06 || Math.abs(high) * 0.1 || 1;
      low -= pad; high += pad;
      const x = (step) => LEFT + step / until * (width - LEFT - RIGHT);
      const y = (value) => TOP + (high - scale(value)) / (high - low) * (height - TOP - BOTTOM);
      const parts = [];
      for (const tick of logarithmic ? decades(low, high) : ticks(low, high, 4)) {
        const value = logarithmic ? 10 ** tick : tick, at = y(value).toFixed(1);
        parts.push(make("svg:line", { x1: LEFT, x2: width - RIGHT, y1: at, y2: at, stroke: "var(--line)" }));
        parts.push(make("svg:text", { x: LEFT - 6, y: at, dy: 4, "text-anchor": "end" }, brief(value)));
      }
      for (const tick of ticks(0, until, width > 500 ? 6 : 3)) {
        parts.push(make("svg:text", { class: "faint", x: x(tick).toFixed(1), y: height - 8, "text-anchor": tick > 0.93 * until ? "end" : "middle" }, brief(tick)));
      }
      for (const { bins: found, colour, band, dots } of this.binned) {
        if (!found.length) continue;
        const places = (index) => found.map((bin) => `${x(bin[0]).toFixed(1)},${y(bin[index]).toFixed(1)}`);
        if (band) parts.push(make("svg:polygon", { points: [...places(3), ...places(2).reverse()].join(" "), fill: `var(--${colour})`, "fill-opacity": 0.16 }));
        parts.push(make("svg:polyline", { points: places(1).join(" "), fill: "none", stroke: `var(--${colour})`, "stroke-width": 1.8, "stroke-linejoin": "round" }));
        if (found.length === 1 || (dots && found.length <= DOTS)) for (const place of places(1)) {
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
      const told = this.binned.filter((one) => one.bins.length).map((one) => {
        const bin = at === null ? one.bins[one.bins.length - 1] : one.bins.reduce((best, next) => Math.abs(next[0] - at) < Math.abs(best[0] - at) ? next : best);
        return [bin[0], show(bin[1])];
      });
      if (at !== null) {
        const place = LEFT + at / this.until * (this.width - LEFT - RIGHT);
        this.cross.setAttribute("x1", place); this.cross.setAttribute("x2", place);
      }
      const text = `${told.map((one) => one[1]).join(" · ")}${at === null ? "" : ` at step ${show(Math.round(told[0][0]))}`}`;
      this.output.textContent = text;
      if (at === null) this.svg.setAttribute("aria-label", `${this.title}: ${text} by step ${show(Math.round(this.until))}`);
    }
  }
  return { Panel, make, show };
})();
