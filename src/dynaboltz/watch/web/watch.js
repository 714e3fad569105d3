// Asks for what is new, and shows it. Names and texts of a run are only ever set as text.
(() => {
  const { Panel, make, show } = Curves;
  const part = (name) => document.querySelector(`[data-part="${name}"]`);
  const token = new URLSearchParams(location.search).get("token") ?? "";
  const STATE_MS = 1000, RETRY_MS = 4000;
  const PHASES = { training: ["training", "holds"], finished: ["finished", "holds"], stopped: ["stopped", "corrected"],
    failed: ["failed", "fails"], gone: ["gone", "fails"], waiting: ["waiting", "later"] };

  class NoAnswer extends Error {}
  const get = async (path) => {
    const lost = () => { throw new NoAnswer("watch does not answer: it has ended, or is busy"); };
    const answer = await fetch(path, { headers: { "X-Dynaboltz-Token": token }, cache: "no-store" }).catch(lost);
    if (!answer.ok) throw new NoAnswer((await answer.text().catch(lost)).trim());
    return answer.json().catch(lost);
  };
  const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
  const visible = () => document.hidden ? new Promise((done) => document.addEventListener("visibilitychange", done, { once: true })) : null;

  // The rows so far, in columns that only grow; emptied where the file has become another one.
  const NUMBERS = ["updates", "syncs", "loss", "q_mean", "td_error", "beta", "c", "gap", "entropy", "epsilon"];
  const episodes = { steps: [], values: [] }, evaluations = { steps: [], values: [] }, learning = { step: [] };
  for (const name of NUMBERS) learning[name] = [];
  let place = 0, mark = "", until = 0, drawn = false;

  const one = (name) => ({ [name]: { steps: learning.step, values: learning[name], colour: "a" } });
  const panels = [
    new Panel({ name: "return", title: "Return of an episode", first: true, series: {
      "training, with the range": { ...episodes, colour: "a", band: true }, evaluation: { ...evaluations, colour: "b", dots: true } } }),
    new Panel({ name: "loss", title: "Loss", hint: "mean since the point before", series: one("loss") }),
    new Panel({ name: "beta", title: "β", hint: "sharpness of the operator", log: true, series: one("beta") }),
    new Panel({ name: "c", title: "c", hint: "of β = c·tᵖ, where it is learned", series: one("c") }),
    new Panel({ name: "gap", title: "Gap, max − operator", hint: "mean over next states", series: one("gap") }),
    new Panel({ name: "entropy", title: "Entropy", hint: "of the operator’s weights on next actions", series: one("entropy") }),
    new Panel({ name: "q_mean", title: "Mean Q", hint: "of the actions taken", series: one("q_mean") }),
    new Panel({ name: "epsilon", title: "ε", hint: "share of random actions in training", series: one("epsilon") }),
  ];
  const extend = (into, more) => { for (const value of more) into.push(value); };

  const draw = () => {
    const there = panels.filter((panel) => !panel.empty);
    part("waiting").hidden = there.length > 0; part("axis").hidden = !there.length;
    const box = part("panels");
    if ([...box.children].join() !== there.map((panel) => panel.node).join() || box.children.length !== there.length) box.replaceChildren(...there.map((panel) => panel.node));
    for (const panel of there) panel.draw(until);
    part("episodes").textContent = show(episodes.steps.length);
    part("updates").textContent = show(learning.updates[learning.updates.length - 1] ?? 0);
  };

  const rows = async () => {
    let changed = !drawn, more = true;
    while (more) {
      const found = await get(`/rows?place=${place}&mark=${mark}`);
      if (found.again) {
        for (const column of [episodes.steps, episodes.values, evaluations.steps, evaluations.values, ...Object.values(learning)]) column.length = 0;
        until = 0;
      }
      changed ||= found.again || found.next !== place;
      ({ next: place, mark, more } = found);
      extend(episodes.steps, found.episodes[0]); extend(episodes.values, found.episodes[1]);
      extend(evaluations.steps, found.evaluations[0]); extend(evaluations.values, found.evaluations[1]);
      for (const name of ["step", ...NUMBERS]) extend(learning[name], found.learning[name]);
      for (const steps of [episodes.steps, evaluations.steps, learning.step]) until = Math.max(until, steps[steps.length - 1] ?? 0);
    }
    if (changed) { drawn = true; draw(); }
  };

  const duration = (seconds) => {
    if (seconds < 100) return `${Math.round(seconds)}\u00a0s`;
    const minutes = Math.round(seconds / 60);
    return minutes < 100 ? `${minutes}\u00a0min` : `${Math.floor(minutes / 60)}\u00a0h ${String(minutes % 60).padStart(2, "0")}\u00a0min`;
  };
  const bytes = (size) => size >= 1e9 ? `${show(Number((size / 1e9).toPrecision(3)))} GB` : `${show(Math.round(size / 1e6))} MB`;

  const phase = (name, kind, note) => {
    if (part("phase").textContent !== name) part("phase").textContent = name;
    part("phase").className = `verdict ${kind}`;
    if (part("note").textContent !== note) part("note").textContent = note;
  };

  const standing = (state) => {
    const [word, kind] = PHASES[state.phase] ?? [state.phase, "later"];
    phase(word, kind, state.note);
    part("title").textContent = `${state.env}: ${state.name}`;
    document.title = `${state.env}: ${state.name}, seed ${state.seed}`;
    part("about").textContent = `${state.summary}, seed ${state.seed}${state.n_envs > 1 ? `, ${state.n_envs} environments` : ""}`;
    part("folder").textContent = state.folder;
    if (state.phase === "gone") return;
    part("progress").value = state.step / state.steps;
    part("step").textContent = `${show(state.step)} of ${show(state.steps)} steps, ${Math.floor(100 * state.step / state.steps)}\u00a0%`;
    const running = { rate: state.rate && `${show(Number(state.rate.toPrecision(3)))} steps/s`,
      left: state.seconds_left && duration(state.seconds_left), memory: state.memory && bytes(state.memory) };
    for (const [name, text] of Object.entries(running)) {
      part(name).textContent = text || "–";
      part(name).parentNode.hidden = state.phase !== "training";
    }
    part("ago").textContent = state.saved_ago === null ? "–" : `${duration(state.saved_ago)} ago`;
    part("saved").textContent = state.saved_step === null ? "" : `at step ${show(state.saved_step)}`;
  };

  // The agent at play.
  // A bar tells how far a value is below the best one; its whole length is the widest such distance of late.
  const FADES = 0.99;
  let fps = 0, paused = false, moment = 0, best = 0, spread = 0;
  part("pause").addEventListener("click", () => {
    paused = !paused;
    part("pause").textContent = paused ? "Play" : "Pause";
  });

  const bar = (kind) => make("tr", { class: kind }, make("td"), make("td", { class: "wide" }, make("div", { class: "bar" }, make("span"))), make("td", { class: "number" }));
  const fill = (row, label, value) => {
    row.cells[0].textContent = label;
    row.cells[2].textContent = value === null ? "" : show(Number(value.toPrecision(4)));
    row.querySelector(".bar span").style.width = value === null ? "0" : `${100 * Math.max(0.01, spread ? 1 - (best - value) / spread : 1)}%`;
  };
  const lines = (box, count, kind) => {
    while (box.rows.length < count) box.append(bar(kind));
    while (box.rows.length > count) box.lastElementChild.remove();
    return [...box.rows];
  };

  const scene = (now) => {
    part("play").hidden = Boolean(now.message);
    if (now.message) { part("which").textContent = now.message; return; }
    part("which").textContent = `With the weights of step ${show(now.weights_step)}, in episodes of its own.`;
    const picture = part("picture"), text = part("text");
    picture.hidden = !now.picture; text.hidden = Boolean(now.picture);
    if (now.picture) picture.src = `data:image/png;base64,${now.picture}`; else text.textContent = now.text;
    picture.alt = `The world in episode ${now.episode}`;
    part("counts").replaceChildren(`episode ${show(now.episode)} · step ${show(now.step)} · return ${show(now.total)} `, make("strong", {}, now.note));
    const made = now.operator === "hard_max" ? null : now.made ?? null;
    if (now.values) {
      best = now.max;
      spread = Math.max(FADES * spread, best - Math.min(...now.values));
    }
    part("low").textContent = now.values && spread ? `max − ${show(Number(spread.toPrecision(2)))}` : "";
    part("high").textContent = now.values ? "max" : "";
    lines(part("actions"), now.labels.length, "").forEach((row, action) => {
      const value = now.values?.[action] ?? null;
      row.className = `${action === now.action ? "chosen" : ""} ${value !== null && value === now.max ? "best" : ""}`;
      if (action === now.action) row.setAttribute("aria-current", "true"); else row.removeAttribute("aria-current");
      fill(row, now.labels[action], value);
    });
    const [max, operator] = lines(part("state"), made === null ? Number(now.max !== undefined) : 2, "");
    if (max) fill(max, "max", now.max);
    if (operator) { operator.className = "operator"; fill(operator, now.operator, made); }
    part("gap").textContent = made === null ? "" : `The state’s value: max − ${now.operator} = ${show(Number((now.max - made).toPrecision(3)))}${now.beta === null ? "" : ` at β = ${show(Number(now.beta.toPrecision(4)))}`}.`;
  };

  const loop = async (work, pause) => {
    for (;;) {
      await visible();
      try { await work(); } catch (fault) {
        if (!(fault instanceof NoAnswer)) throw fault;
        phase("no answer", "fails", `${fault.message}; this page tries again.`);
        await sleep(RETRY_MS);
      }
      await sleep(pause());
    }
  };
  let resized = 0;
  addEventListener("resize", () => { clearTimeout(resized); resized = setTimeout(draw, 100); });
  loop(async () => {
    const state = await get("/state");
    fps = state.playing ? state.fps : 0;
    document.getElementById("stage").hidden = !state.playing;
    await rows();
    standing(state);
  }, () => STATE_MS);
  loop(async () => {
    if (!fps || paused) return;
    const now = await get(`/moment?after=${moment}`);
    if (now.n !== moment) { moment = now.n; scene(now); }
  }, () => fps && !paused ? 1000 / fps : STATE_MS / 4);
})();
