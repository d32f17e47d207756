"use strict";
// Replays: one problem under two orders. Host text reaches the page as text nodes only.
(() => {
  const revealed = (run, step) => new Set(run.steps.flatMap((at, place) => (at === step ? [place] : [])));

  // What is revealed of the text itself: where both sides end in nothing but the end, nobody looks.
  const content = (run, other, step, end) => new Set([...revealed(run, step)].filter((place) => run.text[place] !== end || other.text[place] !== end).map((place) => `${place} ${run.text[place]}`));

  const sameSets = (one, other) => one.size === other.size && [...one].every((place) => other.has(place));

  const element = (name, classes, text) => {
    const made = document.createElement(name);
    made.className = classes;
    if (text !== undefined) made.textContent = text;
    return made;
  };

  function start(root) {
    const data = JSON.parse(root.querySelector("script").textContent);
    const names = Object.keys(data.problems[0]);
    const find = (selector) => root.querySelector(selector);
    const slider = find("input");
    const output = find("output");
    const play = find("[data-play]");
    const problem = find("[data-problem]");
    const orders = [...root.querySelectorAll("[data-order]")];
    const sides = [...root.querySelectorAll("[data-side]")];
    let parting = 0;
    let timer = null;

    const runs = () => orders.map((order) => data.problems[problem.value][order.value]);

    function options(select, labels) {
      labels.forEach(([value, label]) => {
        const option = element("option", "", label);
        option.value = value;
        select.append(option);
      });
    }

    function cell(run, place, other) {
      const given = run.steps[place] === 0;
      const made = element("span", given ? "cell given" : "cell");
      made.append(element("span", "glyph"), element("span", "when", given ? "" : run.steps[place]));
      if (!given) {
        made.style.setProperty("--sure", run.confidence[place]);
        made.title = `position ${place + 1}, step ${run.steps[place]}, confidence ${run.confidence[place].toFixed(3)}`;
      }
      made.classList.toggle("end", run.text[place] === data.end);
      made.classList.toggle("other", run.text[place] !== other.text[place]);
      return made;
    }

    function strip([left, right], last) {
      const marks = [];
      parting = 0;
      const told = (step) => sameSets(content(left, right, step, data.end), content(right, left, step, data.end));
      for (let step = 1; step <= last && !parting; step += 1) if (!told(step)) parting = step;
      for (let step = 1; step <= last; step += 1) {
        const same = sameSets(revealed(left, step), revealed(right, step));
        if (!same && !parting) parting = step;
        const mark = element("span", same ? "mark" : "mark apart");
        mark.title = same ? `step ${step}: the same` : `step ${step}: not the same`;
        if (step === parting) {
          mark.classList.add("first");
          const flag = element("span", step > last / 2 ? "flag early" : "flag", "they part here");
          mark.append(flag);
        }
        marks.push(mark);
      }
      find(".strip").replaceChildren(...marks);
    }

    function build() {
      const pair = runs();
      const last = Math.max(...pair.flatMap((run) => run.steps));
      slider.max = last;
      strip(pair, last);
      find("[data-part]").disabled = !parting;
      find("[data-asked]").textContent = data.asked[problem.value];
      sides.forEach((side, index) => {
        const run = pair[index];
        side.style.setProperty("--colour", data.colours[orders[index].value]);
        side.querySelector("[data-name]").textContent = orders[index].value;
        side.querySelector("[data-earned]").textContent = `reward ${run.reward}`;
        const canvas = side.querySelector(".canvas");
        canvas.classList.toggle("grid", data.columns !== null);
        if (data.columns !== null) canvas.style.setProperty("--columns", data.columns);
        canvas.replaceChildren(...run.steps.map((_, place) => cell(run, place, pair[1 - index])));
      });
      show(parting || last);
    }

    function told(run, step) {
      if (step === 0) return "what is given";
      const all = [...revealed(run, step)];
      const places = all.filter((place) => run.text[place] !== data.end);
      const ends = all.length - places.length;
      const listed = places.slice(0, 6).map((place) => `“${run.text[place]}” at ${place + 1} (${run.confidence[place].toFixed(3)})`);
      if (places.length > listed.length) listed.push(`and ${places.length - listed.length} more`);
      if (ends) listed.push(`${listed.length ? "and " : ""}the end of the text in ${ends} ${ends === 1 ? "place" : "places"}`);
      return listed.length ? `reveals ${listed.join(", ")}` : "reveals nothing";
    }

    function show(step) {
      const pair = runs();
      slider.value = step;
      sides.forEach((side, index) => {
        const run = pair[index];
        [...side.querySelector(".canvas").children].forEach((made, place) => {
          const seen = run.steps[place] <= step;
          made.firstChild.textContent = seen ? run.text[place] : "·";
          made.classList.toggle("hidden", !seen);
          made.classList.toggle("fresh", step > 0 && run.steps[place] === step);
        });
        side.querySelector("[data-now]").textContent = told(run, step);
      });
      [...find(".strip").children].forEach((mark, index) => mark.classList.toggle("past", index < step));
      const together = !parting ? "the same order throughout" : step < parting ? "together so far" : step === parting ? "they part here" : `apart since step ${parting}`;
      output.textContent = `Step ${step} of ${slider.max}, ${together}`;
      slider.setAttribute("aria-valuetext", output.textContent);
    }

    function pause() {
      clearInterval(timer);
      timer = null;
      play.textContent = "Play";
      play.setAttribute("aria-pressed", "false");
    }

    const move = (by) => show(Math.min(Number(slider.max), Math.max(0, Number(slider.value) + by)));

    function toggle() {
      if (timer) return pause();
      if (slider.value === slider.max) show(0);
      play.textContent = "Pause";
      play.setAttribute("aria-pressed", "true");
      timer = setInterval(() => (slider.value === slider.max ? pause() : move(1)), 450);
    }

    const jump = (step) => {
      pause();
      show(step);
    };

    const keys = {
      ArrowLeft: () => jump(Math.max(0, Number(slider.value) - 1)),
      ArrowRight: () => jump(Math.min(Number(slider.max), Number(slider.value) + 1)),
      Home: () => jump(0),
      End: () => jump(Number(slider.max)),
      " ": toggle,
      p: () => parting && jump(parting),
    };

    options(problem, data.problems.map((runsOf, index) => [index, `${index + 1}: ${names.filter((name) => runsOf[name].reward > runsOf[data.reference].reward).length} of ${names.length - 1} earn more than ${data.reference}`]));
    orders.forEach((order) => options(order, names.map((name) => [name, name])));
    orders[0].value = data.reference;
    orders[1].value = data.other;
    const telling = data.problems.findIndex((runsOf) => runsOf[data.other].reward !== runsOf[data.reference].reward);
    problem.value = Math.max(0, telling);
    [problem, ...orders].forEach((select) => select.addEventListener("change", () => { pause(); build(); }));
    slider.addEventListener("input", () => jump(Number(slider.value)));
    play.addEventListener("click", toggle);
    find("[data-back]").addEventListener("click", keys.ArrowLeft);
    find("[data-on]").addEventListener("click", keys.ArrowRight);
    find("[data-part]").addEventListener("click", keys.p);
    root.addEventListener("keydown", (event) => {
      const own = event.target.matches("select") || (event.key === " " && event.target.matches("button"));
      const act = keys[event.key.length === 1 ? event.key.toLowerCase() : event.key];
      if (own || !act || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      act();
    });
    find(".canvases").addEventListener("click", () => slider.focus());
    build();
  }

  document.querySelectorAll("[data-replay]").forEach(start);

  // What is folded on the screen is open on paper, but for tables that would fill pages.
  let folded = [];
  addEventListener("beforeprint", () => {
    folded = [...document.querySelectorAll("details:not([open], .long)")];
    folded.forEach((part) => { part.open = true; });
  });
  addEventListener("afterprint", () => folded.forEach((part) => { part.open = false; }));
})();
