// The page of `sinter explain --html`: the picture, answers about two values, kernels, search.

const entries = data.entries, texts = data.texts;
const COLUMN = 372, CHIP = 20, LANE = 12, CHARACTER = 7.25, STUBS = 230;

/// [text, id] of a reason.
const reasonOf = number => texts[number].split("\n");
const nameOf = (entry, value) => entry.values[value][0];
/// Numbers of values by name, with those that only read another value.
for (const entry of entries) {
  entry.number = new Map(entry.values.map((value, i) => [value[0], i]));
  for (const [name, root] of entry.views) if (!entry.number.has(name)) entry.number.set(name, root);
  entry.isComputed = value => entry.values[value].length > 3;
  entry.stepOf = value => entry.isComputed(value) ? entry.fused.steps[entry.values[value][3]] : null;
  entry.worthOf = new Map(entry.worths.map(worth => [Math.min(worth.a, worth.b) + "," + Math.max(worth.a, worth.b), worth]));
  entry.answerOf = new Map(entry.answers.map(answer => [answer[0] + "," + answer[1], answer]));
  entry.sectionOf = [];
  entry.sections.forEach((section, i) => section.steps.forEach(step => { entry.sectionOf[step] = i; }));
}

const state = { views: entries.length ? [0] : [], mode: "fused", entry: 0, picks: [], kernel: null, reason: null };

// ---- answers ---------------------------------------------------------------------------------

/// The user's line that made a value; its parts and copies have its name before a dot.
function sourceOf(name) {
  for (let at = name; at; at = at.slice(0, Math.max(at.lastIndexOf("."), 0)))
    if (Object.hasOwn(sources, at)) return sources[at];
  return "";
}

/// The values that read each value, made when they are first asked for.
function readersOf(entry) {
  if (entry.readers) return entry.readers;
  entry.readers = entry.values.map(() => []);
  entry.values.forEach((value, i) => { for (const operand of value[4] || []) entry.readers[operand].push(i); });
  return entry.readers;
}

/// A shortest path of data between two values of the page, the earlier first.
function pathBetween(entry, a, b) {
  const [first, last] = [Math.min(a, b), Math.max(a, b)], before = new Map([[first, -1]]), readers = readersOf(entry);
  for (let queue = [first]; queue.length && !before.has(last);) {
    const next = [];
    for (const at of queue)
      for (const reader of readers[at])
        if (!before.has(reader)) { before.set(reader, at); next.push(reader); }
    queue = next;
  }
  if (!before.has(last)) return [];
  const path = [];
  for (let at = last; at >= 0; at = before.get(at)) path.push(at);
  return path.reverse();
}

const sameKernel = (entry, a, b) => entry.values[a][3] === entry.values[b][3];
const storedAnswer = (entry, a, b) => entry.answerOf.get(Math.min(a, b) + "," + Math.max(a, b));

/// The first two neighbours on a path that do not share a kernel, as far as their answer is stored.
function firstRefusal(entry, path) {
  for (let i = 0; i + 1 < path.length; ++i) {
    if (!entry.isComputed(path[i]) || !entry.isComputed(path[i + 1]) || sameKernel(entry, path[i], path[i + 1])) continue;
    const stored = storedAnswer(entry, path[i], path[i + 1]);
    if (!stored) return null;
    const [, , reason, detail = 0, change = 0] = stored, [text, id] = reasonOf(reason);
    return { a: nameOf(entry, path[i]), b: nameOf(entry, path[i + 1]), text, id, detail: texts[detail], change: texts[change] };
  }
  return null;
}

/// The answer about two values: {same, text, id, detail, change, path, pathText, first, fusion}. What is not stored of it is
/// made here, of the ops and edges. `stored` is false for a pair of a large entry about which the engine was not asked.
function answerOf(entry, a, b) {
  const same = sameKernel(entry, a, b), stored = storedAnswer(entry, a, b);
  const [, , reason, detail = 0, change = 0, path = 0, pathText = 0, first = 0, merge = 0] = stored || [];
  const [text, id] = stored ? reasonOf(reason) : [same ? "they share a kernel" : "fusion was not asked about these two", ""];
  const answer = { stored: stored !== undefined, same, text, id, detail: texts[detail], change: texts[change],
    path: path || pathBetween(entry, a, b), pathText: texts[pathText], first: null, fusion: null };
  // The first fusion with both of them brought them together.
  if (same) answer.fusion = entry.fusions.find(one => merge ? one[0] === merge : one[2].includes(a) && one[2].includes(b)) || null;
  if (first) answer.first = { a: texts[first[0]], b: texts[first[1]], text: reasonOf(first[2])[0], id: reasonOf(first[2])[1],
    detail: texts[first[3]], change: texts[first[4]] };
  else if (!same && !path && answer.path.length > 2) {
    answer.pathText = answer.path.map(value => nameOf(entry, value)).join(" → ");
    answer.first = firstRefusal(entry, answer.path);
  }
  return answer;
}

const stepTime = step => step.measured !== undefined ? step.measured : step.predicted;
const placeText = step => step ? "launch " + step.index + ", " + step.name : "no kernel";
const quoted = text => /^[\w./,:=-]+$/.test(text) ? text : "'" + text.replace(/'/g, "'\\''") + "'";

function whyCommand(entry, a, b) {
  const words = (data.command || "sinter explain MODEL").match(/(?:[^\s'\\]|\\.|'[^']*')+/g);
  const end = words.findIndex(word => /^--(?:html|json|dot|why|measured|against)\b/.test(word));
  const own = words.slice(0, end < 0 ? words.length : end).join(" ");
  return own + " --why " + quoted(nameOf(entry, a)) + " " + quoted(nameOf(entry, b));
}

function kernelText(step) {
  return step.cuda === undefined ? "" : data.cuda.texts[step.cuda].map(line => data.cuda.lines[line]).join("\n");
}

// ---- Markdown --------------------------------------------------------------------------------

const origin = () => "<sub>sinter " + plain(data.sinter) + ", " + plain(data.target) + ", " + plain(data.numerics) + " numerics" +
  (data.command ? ": " + span(data.command) : "") + "</sub>\n";

function markdown() {
  const entry = entries[state.entry];
  if (!entry) return "";
  const where = plain(entry.title) + (entry.sizes ? ", " + plain(entry.sizes) : "");
  const lines = ["**" + plain(data.model) + "**, " + where, ""];
  if (state.picks.length === 2) {
    const [a, b] = state.picks, answer = answerOf(entry, a, b);
    lines.push("**" + span(nameOf(entry, a)) + " and " + span(nameOf(entry, b)) + (answer.same ? " share a kernel" : " do not share a kernel") +
      "**: " + plain(answer.text) + (answer.id ? " (" + span(answer.id) + ")" : ""), "");
    if (answer.detail) lines.push("- what decided: " + span(answer.detail));
    if (answer.pathText) lines.push("- path: " + span(answer.pathText));
    if (answer.change) lines.push("- what would have to change: " + plain(answer.change));
    if (answer.first) lines.push("- first on the path, " + span(answer.first.a) + " and " + span(answer.first.b) + " do not share a kernel: " +
      plain(answer.first.text) + " (" + span(answer.first.id) + ")");
    const worth = entry.worthOf.get(Math.min(a, b) + "," + Math.max(a, b));
    if (worth && !answer.same) lines.push("- worth " + worth.stated + " of " + duration(entry.fused.total.seconds) + " in " + counted(worth.count, "place") +
      (worth.option ? ", by " + span(worth.option) : ""));
    if (answer.fusion) lines.push("- fusion " + answer.fusion[0] + " brought them together; it saves " + (answer.fusion[1] > 0 ? withUnit(answer.fusion[1], "B") : "a launch"));
    lines.push("", "| value | op | type | kernel | source |", "| --- | --- | --- | --- | --- |");
    for (const value of [a, b]) {
      const source = sourceOf(nameOf(entry, value));
      lines.push("| " + span(nameOf(entry, value)) + " | " + plain(entry.values[value][1]) + " | " + span(entry.values[value][2]) + " | " +
        plain(placeText(entry.stepOf(value))) + " | " + (source ? span(source) : "") + " |");
    }
  } else if (state.kernel !== null) {
    const step = entry.fused.steps[state.kernel];
    lines.push("Launch " + step.index + ", " + span(step.name) + ": " + withUnit(step.read + step.written, "B") + ", predicted " + duration(step.predicted) +
      (step.measured !== undefined ? ", measured " + duration(step.measured) : ""), "", "| value | op | type |", "| --- | --- | --- |");
    for (const value of step.values) lines.push("| " + span(nameOf(entry, value)) + " | " + plain(entry.values[value][1]) + " | " + span(entry.values[value][2]) + " |");
  } else {
    lines.push(plain(entry.headline), "");
    const matter = entry.worths.filter(worth => worth.matters);
    if (matter.length) lines.push("| worth | of the time | places | values | reason |", "| ---: | ---: | ---: | --- | --- |");
    for (const worth of matter) {
      const [text, id] = reasonOf(worth.reason);
      lines.push("| " + worth.stated + " | " + percent(worth.share) + " | " + worth.count + " | " +
        span(nameOf(entry, worth.a)) + " and " + span(nameOf(entry, worth.b)) + " | " + plain(text) + " (" + span(id) + ")" +
        (worth.option ? "; by " + span(worth.option) : "") + " |");
    }
  }
  return lines.join("\n") + "\n\n" + origin();
}

// ---- the picture -----------------------------------------------------------------------------

const clip = (text, room) => { const most = Math.max(1, Math.floor(room / CHARACTER)); return text.length > most ? text.slice(0, most - 1) + "…" : text; };

/// The kind of a value that no kernel of the entry computes, for its colour.
const givenKind = op => op === "weight" ? "weight" : op === "input" ? "given" : "state";

/// Rows of chips, each [value, x, width].
function chipRows(entry, values) {
  const rows = [[]];
  let x = 8;
  for (const value of values) {
    const width = Math.min(COLUMN - 16, nameOf(entry, value).length * CHARACTER + 12);
    if (x + width > COLUMN - 8 && rows[rows.length - 1].length) { rows.push([]); x = 8; }
    rows[rows.length - 1].push([value, x, width]);
    x += width + 5;
  }
  return rows;
}

/// The first lane for each span of steps that no span before it has where they meet.
function lanesOf(spans, count) {
  // A tree over the steps. Lanes are bits: those in use somewhere below a node, and in all of it.
  const some = [], whole = [];
  const used = (node, begin, end, low, high) => {
    if (high < begin || low > end) return 0n;
    if (low <= begin && end <= high) return some[node] || 0n;
    const middle = (begin + end) >> 1;
    return (whole[node] || 0n) | used(2 * node, begin, middle, low, high) | used(2 * node + 1, middle + 1, end, low, high);
  };
  const take = (node, begin, end, low, high, lane) => {
    if (high < begin || low > end) return;
    some[node] = (some[node] || 0n) | lane;
    if (low <= begin && end <= high) { whole[node] = (whole[node] || 0n) | lane; return; }
    const middle = (begin + end) >> 1;
    take(2 * node, begin, middle, low, high, lane);
    take(2 * node + 1, middle + 1, end, low, high, lane);
  };
  return spans.map(([low, high]) => {
    const taken = used(1, 0, count - 1, low, high), free = ~taken & (taken + 1n);
    take(1, 0, count - 1, low, high, free);
    return free.toString(2).length - 1;
  });
}

/// One of an entry's plans, from top to bottom in the order of launches. Edges of neighbours lead
/// straight down, others through lanes at the left; what is given to a kernel stands at its right.
function picture(number, kind) {
  const entry = entries[number], plan = entry[kind], steps = plan.steps;
  const largest = (list, least) => list.reduce((most, one) => Math.max(most, one), least);
  const most = { time: largest(steps.map(stepTime), 1e-12), bytes: largest(steps.map(step => step.read + step.written), 1) };
  const widest = largest(plan.edges.map(edge => edge[3]), 1), thick = bytes => Math.max(1, (LANE - 2) * Math.sqrt(bytes / widest));
  const stubs = steps.map(() => []), between = [];
  for (const edge of plan.edges) (edge[0] < 0 ? stubs[edge[1]] : between).push(edge);

  // Lanes: short edges inside, none on top of another.
  const lane = new Map(), straight = new Map(), far = [];
  for (const edge of between) {
    const [from, to] = edge;
    if (to !== from + 1 || entry.sectionOfStep(kind, from) !== entry.sectionOfStep(kind, to)) far.push(edge);
    else (straight.get(from) || straight.set(from, []).get(from)).push(edge);
  }
  far.sort((x, y) => Math.abs(x[1] - x[0]) - Math.abs(y[1] - y[0]));
  const lanes = lanesOf(far.map(edge => [Math.min(edge[0], edge[1]), Math.max(edge[0], edge[1])]), steps.length);
  far.forEach((edge, i) => lane.set(edge, lanes[i]));
  const left = 18 + largest(lanes.map(at => at + 1), 0) * LANE + 10;

  // Places of boxes.
  const boxes = [], frames = [];
  let y = 8;
  for (const [i, section] of entry.sectionSteps(kind).entries()) {
    const info = entry.sections[i], top = y;
    if (info.title) y += 22;
    for (const step of section) {
      const rows = chipRows(entry, steps[step].values);
      const height = Math.max(34 + rows.length * (CHIP + 4) + 4, stubs[step].length * 15 + 12);
      boxes[step] = { y, height, rows };
      y += height + 20;
    }
    if (info.title) frames.push({ y: top, height: y - top - 8, title: info.title + (info.count > 1 ? " ×" + info.count + " (" + info.repeats + ")" : "") });
    y += 8;
  }
  const width = left + COLUMN + STUBS, svg = s("svg", { width, height: y + 4, viewBox: `0 0 ${width} ${y + 4}`, role: "group", "data-entry": number, "data-kind": kind,
    "aria-label": (kind === "fused" ? "kernels of " : "ops of ") + entry.title });
  for (const frame of frames)
    svg.append(s("rect", { class: "frame", x: 4, y: frame.y, width: width - 8, height: frame.height, rx: 8 }),
      s("text", { class: "small", x: 14, y: frame.y + 15 }, frame.title));

  // Edges, then boxes above them.
  const mark = (edge, shape) => { shape.dataset.from = edge[0]; shape.dataset.to = edge[1]; shape.dataset.value = edge[2]; return shape; };
  const hint = edge => s("title", {}, nameOf(entry, edge[2]) + ", " + withUnit(edge[3], "B") + (edge[4] ? ", to the next layer" : ""));
  for (const list of straight.values())
    list.forEach((edge, k) => {
      const x = left + 40 + k * 26, from = boxes[edge[0]], to = boxes[edge[1]];
      svg.append(mark(edge, s("path", { class: "edge", d: `M${x} ${from.y + from.height} V${to.y}`, "stroke-width": thick(edge[3]) }, hint(edge))));
    });
  for (const [edge, at] of lane) {
    const from = boxes[edge[0]], to = boxes[edge[1]], x = left - 14 - at * LANE;
    const begin = from.y + from.height - 8 - (at % 3) * 3, end = to.y + 10 + (at % 4) * 4, turn = end > begin ? 6 : -6;
    svg.append(mark(edge, s("path", { class: "edge" + (edge[4] ? " back" : ""), "stroke-width": thick(edge[3]),
      d: `M${left} ${begin} H${x + 6} Q${x} ${begin} ${x} ${begin + turn} V${end - turn} Q${x} ${end} ${x + 6} ${end} H${left}` }, hint(edge))));
  }
  steps.forEach((step, i) => {
    const box = boxes[i], bytes = step.read + step.written;
    const title = kind === "fused" ? step.index + "  " + step.name : entry.values[step.values[0]][1];
    const shape = s("g", { class: "box " + step.kind, transform: `translate(${left} ${box.y})`, tabindex: 0, role: "button",
      "data-step": i, "data-kind": kind, "data-entry": number, "aria-label": title + ", " + duration(stepTime(step)) + ", " + withUnit(bytes, "B"),
      click: () => kind === "fused" ? pickKernel(number, i) : pickValue(number, step.values[0]) },
    s("rect", { class: "body", width: COLUMN, height: box.height, rx: step.kind === "gemm" ? 2 : 7 }),
    s("text", { x: 8, y: 16 }, clip(title + (step.kind === "gemm" ? "  library call" : ""), COLUMN - 96)),
    s("text", { x: COLUMN - 8, y: 16, "text-anchor": "end" }, duration(stepTime(step))),
    s("rect", { class: "track", x: 8, y: 22, width: COLUMN - 16, height: 3 }),
    s("rect", { class: "time", x: 8, y: 22, width: Math.max(1, (COLUMN - 16) * stepTime(step) / most.time), height: 3 }),
    s("rect", { class: "track", x: 8, y: 27, width: COLUMN - 16, height: 3 }),
    s("rect", { class: "bytes", x: 8, y: 27, width: Math.max(1, (COLUMN - 16) * bytes / most.bytes), height: 3 }, s("title", {}, withUnit(bytes, "B"))));
    box.rows.forEach((row, k) => row.forEach(([value, x, wide]) => shape.append(s("g", { class: "chip" + (["kv_append", "store"].includes(entry.values[value][1]) ? " state" : ""), tabindex: 0, role: "button",
      "data-value": value, "data-entry": number, transform: `translate(${x} ${34 + k * (CHIP + 4)})`, "aria-label": "value " + nameOf(entry, value),
      click: event => { event.stopPropagation(); pickValue(number, value); } },
      s("title", {}, nameOf(entry, value) + " = " + entry.values[value][1] + " : " + entry.values[value][2]),
      s("rect", { width: wide, height: CHIP, rx: 5 }), s("text", { x: 6, y: 14 }, clip(nameOf(entry, value), wide - 8))))));
    svg.append(shape);
    stubs[i].forEach((edge, k) => {
      const at = box.y + 10 + k * 15, given = givenKind(entry.values[edge[2]][1]);
      svg.append(mark(edge, s("path", { class: "edge stub " + given, d: `M${left + COLUMN + 26} ${at} H${left + COLUMN}`, "stroke-width": thick(edge[3]) }, hint(edge))),
        s("text", { class: "small", x: left + COLUMN + 31, y: at + 4 }, clip(nameOf(entry, edge[2]) + " " + withUnit(edge[3], "B"), STUBS - 40), hint(edge)));
    });
  });
  const total = plan.total;
  return h("div", { class: "picture" }, h("p", {}, h("b", {}, entry.title), " ", h("span", { class: "dim" }, (kind === "fused" ? "fused" : "an op a kernel") + ": " +
    counted(total.launches, "launch", "launches") + ", " + counted(total.calls, "library call") + ", " + withUnit(total.bytes, "B") + ", " +
    (total.measured ? "measured " : "predicted ") + duration(total.seconds))), svg);
}
for (const entry of entries) {
  // The sections of the plan with a kernel for each op: values in the places of their kernels.
  const value_section = new Map();
  entry.fused.steps.forEach((step, i) => step.values.forEach(value => value_section.set(value, entry.sectionOf[i])));
  const other = entry.sections.map(() => []);
  entry.unfused.steps.forEach((step, i) => other[value_section.get(step.values[0]) || 0].push(i));
  entry.sectionSteps = kind => kind === "fused" ? entry.sections.map(section => section.steps) : other;
  const number = new Map(other.flatMap((list, i) => list.map(step => [step, i])));
  entry.sectionOfStep = (kind, step) => kind === "fused" ? entry.sectionOf[step] : number.get(step);
}

const pictures = h("div", { class: "pictures", id: "pictures" });

function draw() {
  const kinds = state.mode === "side by side" ? ["unfused", "fused"] : [state.mode];
  pictures.replaceChildren(...state.views.flatMap(view => kinds.map(kind => picture(view, kind))));
  light();
}

/// Lights up the picked values, the path between them and the kernel.
function light() {
  const entry = entries[state.entry];
  const path = state.picks.length === 2 ? answerOf(entry, ...state.picks).path : [];
  const on_path = new Set(path), next = new Set(path.slice(1).map((value, i) => path[i] + "," + value));
  for (const chip of pictures.querySelectorAll(".chip")) {
    const own = Number(chip.dataset.entry) === state.entry, value = Number(chip.dataset.value);
    chip.classList.toggle("pick", own && state.picks.includes(value));
    chip.classList.toggle("path", own && on_path.has(value) && !state.picks.includes(value));
    chip.setAttribute("aria-pressed", String(own && state.picks.includes(value)));
  }
  for (const box of pictures.querySelectorAll(".box"))
    box.classList.toggle("at", Number(box.dataset.entry) === state.entry && box.dataset.kind === "fused" && Number(box.dataset.step) === state.kernel);
  for (const edge of pictures.querySelectorAll(".edge")) {
    const svg = edge.ownerSVGElement.dataset, own = Number(svg.entry) === state.entry, value = Number(edge.dataset.value);
    const readers = own ? entry[svg.kind].steps[Number(edge.dataset.to)].values : [];
    edge.classList.toggle("path", readers.some(reader => next.has(value + "," + reader)));
  }
}

// ---- the panel -------------------------------------------------------------------------------

const panel = h("aside", { id: "panel", "aria-live": "polite", tabindex: -1 });
const valueLink = (number, value) => h("button", { class: "link mono", click: () => pickValue(number, value) }, nameOf(entries[number], value));
const kernelLink = (number, step) => h("button", { class: "link mono", click: () => pickKernel(number, entries[number].fused.steps.indexOf(step)) }, placeText(step));

function buttons() {
  return h("p", { class: "buttons" }, h("button", { id: "copy", title: "copy as Markdown (m)", click: event => copyText(markdown(), event.currentTarget) }, "copy as Markdown"), " ",
    state.picks.length || state.kernel !== null ? h("button", { id: "clear", click: clear }, "clear (Esc)") : "");
}

function sourceLine(name) {
  const source = sourceOf(name);
  return source ? [h("dt", {}, "source"), h("dd", {}, h("code", {}, source))] : [];
}

function verdictPanel(number, a, b) {
  const entry = entries[number], answer = answerOf(entry, a, b), worth = entry.worthOf.get(Math.min(a, b) + "," + Math.max(a, b));
  const rows = [];
  const row = (name, ...content) => rows.push(h("dt", {}, name), h("dd", {}, content));
  for (const value of [a, b]) {
    row("value", valueLink(number, value), " ", h("span", { class: "dim mono" }, entry.values[value][1] + " " + entry.values[value][2]));
    row("in", entry.stepOf(value) ? kernelLink(number, entry.stepOf(value)) : "no kernel");
    rows.push(...sourceLine(nameOf(entry, value)));
  }
  if (answer.detail) row("what decided", h("code", {}, answer.detail));
  if (worth && !answer.same) row("worth", worth.stated, ", ", percent(worth.share), " of the entry, in ", counted(worth.count, "place"),
    worth.option ? [", by ", h("code", {}, worth.option)] : "");
  if (answer.fusion) row("fusion", `${answer.fusion[0]} brought them together`,
    answer.fusion[2].filter(value => value !== a && value !== b).length ? ", with " : "",
    answer.fusion[2].filter(value => value !== a && value !== b).flatMap(value => [valueLink(number, value), " "]),
    "; it saves ", answer.fusion[1] > 0 ? withUnit(answer.fusion[1], "B") : "a launch");
  return [h("h2", {}, h("code", {}, nameOf(entry, a)), " and ", h("code", {}, nameOf(entry, b))),
    h("div", { class: "answer " + (answer.same ? "fused" : "apart") },
      h("p", {}, h("b", { class: answer.same ? "good" : "bad" }, answer.same ? "They share a kernel" : "They do not share a kernel"), ": ", answer.text,
        answer.id ? [" (", h("code", {}, answer.id), ")"] : ""),
      answer.change ? h("p", { id: "change" }, h("b", {}, "What would have to change: "), answer.change) : ""),
    h("dl", {}, rows),
    answer.path.length > 2 || answer.pathText ? [h("h3", {}, "Path"), answer.pathText ? h("p", { class: "mono" }, answer.pathText) : "",
      h("ol", { class: "path", id: "path" }, answer.path.map(value => h("li", {}, valueLink(number, value), " ",
        h("span", { class: "dim" }, placeText(entry.stepOf(value))))))] : "",
    answer.first ? h("p", {}, "First on the path, ", h("code", {}, answer.first.a), " and ", h("code", {}, answer.first.b), " do not share a kernel: ",
      answer.first.text, " (", h("code", {}, answer.first.id), ")", answer.first.detail ? ": " + answer.first.detail : "",
      answer.first.change ? h("span", { class: "dim" }, ". " + answer.first.change) : "") : "",
    h("p", { class: "dim" }, answer.stored ? "" : "The entry is large; this command has the whole verdict: ", answer.stored && !data.command ? "" : h("code", {}, whyCommand(entry, a, b))), buttons()];
}

function kernelPanel(number, at) {
  const entry = entries[number], step = entry.fused.steps[at], cuda = kernelText(step), rows = [];
  const row = (name, ...content) => rows.push(h("dt", {}, name), h("dd", {}, content));
  const section = entry.sections[entry.sectionOf[at]];
  row("launch", String(step.index), section.count > 1 ? `, and in ${section.count - 1} more layers` : "");
  row("predicted", duration(step.predicted), ", ", percent(step.predicted / entry.fused.total.predicted), " of the entry a launch");
  if (step.measured !== undefined) row("measured", duration(step.measured), ", ", (step.measured / Math.max(step.predicted, 1e-12)).toFixed(2), " × predicted");
  row("bytes", withUnit(step.read, "B"), " read, ", withUnit(step.written, "B"), " written, ", withUnit((step.read + step.written) / Math.max(stepTime(step), 1e-12), "B/s"));
  if (step.blocks !== undefined) row("grid", `${step.blocks} × ${step.threads} threads`, step.cluster ? `, clusters of ${step.cluster}` : "");
  if (step.shared) row("shared memory", withUnit(step.shared, "B"), " a block asked for at the launch");
  if (step.launch) row("as launched", `grid ${step.launch.grid.join("×")}, block ${step.launch.block.join("×")}, ${step.launch.registers} registers a thread, ${withUnit(step.launch.shared, "B")} shared a block`);
  if (step.early) row("reads early", h("code", {}, step.early.join(" ")));
  const about = new Set(step.values);
  const verdicts = entry.decisions.filter(one => about.has(one[1]) || about.has(one[2]));
  return [h("h2", {}, step.kind === "kernel" ? "Kernel " : step.kind === "gemm" ? "Library call " : "Copy ", h("code", {}, step.name)), h("dl", {}, rows),
    h("h3", {}, "Ops"), h("table", {}, step.values.map(value => h("tr", {}, h("td", {}, valueLink(number, value)), h("td", { class: "mono" },
      entry.values[value][1] + " " + (entry.values[value][4] || []).map(operand => nameOf(entry, operand)).join(", ") + " : " + entry.values[value][2],
      sourceOf(nameOf(entry, value)) ? h("div", { class: "dim" }, sourceOf(nameOf(entry, value))) : "")))),
    cuda ? [h("h3", {}, "CUDA text"), h("pre", { id: "cuda", tabindex: 0 }, cuda)] : step.kind === "kernel" ? h("p", { class: "dim" },
      "The page would be too large with the kernels' text; `sinter compile -o FOLDER` writes it.") : "",
    h("h3", {}, "Decisions about them"), h("table", { id: "about" }, verdicts.slice(0, 60).map(one => h("tr", { class: "go", tabindex: 0, click: () => pickPair(number, one[1], one[2]),
      keydown: event => { if (event.key === "Enter") pickPair(number, one[1], one[2]); } },
      h("td", { class: one[0] ? "good" : "bad" }, one[0] ? "fused" : "refused"), h("td", { class: "mono" }, nameOf(entry, one[1]), h("br"), nameOf(entry, one[2])), h("td", {}, reasonOf(one[4])[0])))), buttons()];
}

function valuePanel(number, value) {
  const entry = entries[number], [name, op, type, , operands] = entry.values[value], step = entry.stepOf(value);
  const readers = readersOf(entry)[value];
  const list = values => values.flatMap((one, i) => [i ? ", " : "", entry.isComputed(one) ? valueLink(number, one) : h("code", {}, nameOf(entry, one))]);
  return [h("h2", {}, h("code", {}, name)), h("dl", {}, h("dt", {}, "op"), h("dd", {}, op), h("dt", {}, "type"), h("dd", { class: "mono" }, type),
    h("dt", {}, "in"), h("dd", {}, step ? kernelLink(number, step) : "no kernel"), operands && operands.length ? [h("dt", {}, "reads"), h("dd", {}, list(operands))] : "",
    readers.length ? [h("dt", {}, "read by"), h("dd", {}, list(readers))] : "", sourceLine(name)),
    h("p", {}, h("b", {}, "Choose a second value"), " to see whether they share a kernel, and why (not)."), buttons()];
}

/// Seconds by class of work: a column for each of the entries, and their sum. Of more than six entries the
/// chosen one alone.
function classTable(number) {
  const shown = entries.length <= 6 ? entries : [entries[number]], spent = new Map();
  shown.forEach((entry, i) => entry.classes.forEach(one => {
    if (!spent.has(one.class)) spent.set(one.class, shown.map(() => 0));
    spent.get(one.class)[i] = one.seconds;
  }));
  const sum = list => list.reduce((total, one) => total + one, 0), all = sum([...spent.values()].map(sum));
  const cells = list => list.map(one => one > 0 ? duration(one) : "–").concat(shown.length > 1 ? [duration(sum(list))] : []);
  const rows = [...spent].sort((a, b) => sum(b[1]) - sum(a[1])).map(([name, list]) => [name, ...cells(list), all > 0 ? percent(sum(list) / all) : ""]);
  const heads = ["class", ...shown.map(entry => entry.title), ...(shown.length > 1 ? ["all"] : []), "share"];
  return [h("h3", {}, "Time by class"), h("div", { class: "narrow" }, tableOf(heads, rows.concat([["all", ...cells(shown.map((_, i) => sum([...spent.values()].map(list => list[i])))), ""]]), heads.map((_, i) => i).slice(1)))];
}

function payPanel(number) {
  const entry = entries[number], matter = entry.worths.filter(worth => worth.matters);
  return [h("h2", {}, "What would pay"), h("p", { class: "dim" }, entry.headline), entry.choices.map(text => h("p", { class: "dim" }, text)),
    matter.length ? tableOf(["worth", "", "", "values and reason"], matter.map(worth => [worth.stated, percent(worth.share), worth.count + "×",
      h("div", {}, h("code", {}, nameOf(entry, worth.a)), " and ", h("code", {}, nameOf(entry, worth.b)), ": ", reasonOf(worth.reason)[0], worth.option ? ["; by ", h("b", { class: "mono" }, worth.option)] : "")]),
      [0, 1, 2], i => pickPair(number, matter[i].a, matter[i].b)) : h("p", {}, "No refusal that a kernel could lift costs 0.5 % of the time."), classTable(number),
    h("p", { class: "dim" }, "Click a value and then another one to ask why they share a kernel or not; click a kernel for its ops, launch and CUDA text."), buttons()];
}

function showPanel() {
  const number = state.entry;
  if (!entries.length) return;
  panel.replaceChildren(...[state.picks.length === 2 ? verdictPanel(number, ...state.picks) : state.picks.length === 1 ? valuePanel(number, state.picks[0])
    : state.kernel !== null ? kernelPanel(number, state.kernel) : payPanel(number)].flat(Infinity).filter(part => part !== ""));
  panel.scrollTop = 0;
  const title = entries[number].title;
  place.set(state.picks.length === 2 ? ["why", title, ...state.picks.map(value => nameOf(entries[number], value))]
    : state.picks.length === 1 ? ["value", title, nameOf(entries[number], state.picks[0])]
    : state.kernel !== null ? ["kernel", title, String(entries[number].fused.steps[state.kernel].index)] : ["entry", title]);
}

function update() { light(); showPanel(); }
function enter(number) {
  if (state.entry !== number) { state.picks = []; state.kernel = null; }
  state.entry = number;
  if (!state.views.includes(number)) { state.views = [number]; draw(); pressTabs(); showTables(); }
}
function pickValue(number, value) {
  enter(number);
  if (!entries[number].isComputed(value)) return;
  state.kernel = null;
  state.picks = state.picks.length === 1 && state.picks[0] !== value ? [state.picks[0], value] : [value];
  update();
}
function pickPair(number, a, b) {
  enter(number);
  if (!entries[number].isComputed(a) || !entries[number].isComputed(b)) return;
  state.kernel = null;
  state.picks = [a, b];
  update();
  scrollToValue(a);
}
function pickKernel(number, step) { enter(number); state.picks = []; state.kernel = step; update(); }
function clear() { state.picks = []; state.kernel = null; update(); }
function scrollToValue(value) {
  const chip = pictures.querySelector(`.chip[data-entry="${state.entry}"][data-value="${value}"]`);
  if (chip) chip.scrollIntoView({ block: "center", inline: "nearest" });
}

// ---- tables ----------------------------------------------------------------------------------

const tables = h("div", { class: "tables", id: "tables" });

function againstPart() {
  if (!data.against) return "";
  const change = (here, there) => there > 0 ? (here / there >= 1 ? "+" : "") + (100 * (here / there - 1)).toFixed(1) + " %" : "";
  return [h("h2", { id: "against" }, "Two plans side by side"), data.against.entries.map(one => one.here && one.there ? [h("h3", {}, one.here.title),
    tableOf(["", "here", "there", ""], [["kernel launches", one.here.launches, one.there.launches, change(one.here.launches, one.there.launches)],
      ["library calls", one.here.calls, one.there.calls, change(one.here.calls, one.there.calls)],
      ["bytes", withUnit(one.here.bytes, "B"), withUnit(one.there.bytes, "B"), change(one.here.bytes, one.there.bytes)],
      ["predicted", duration(one.here.predicted_s), duration(one.there.predicted_s), change(one.here.predicted_s, one.there.predicted_s)]], [1, 2, 3]),
    one.kernels.length ? tableOf(["", "here less there", "kernels here", "kernels there"], one.kernels.map(kernels => [kernels.count + "×",
      (kernels.here_s < kernels.there_s ? "−" : "+") + duration(Math.abs(kernels.here_s - kernels.there_s)),
      h("div", { class: "mono" }, kernels.here.map(text => h("div", {}, text))), h("div", { class: "mono" }, kernels.there.map(text => h("div", {}, text)))]), [0, 1]) : h("p", {}, "the same kernels"),
    one.decisions.length ? tableOf(["", "values", "here", "there"], one.decisions.map(d => [d.count + "×", h("code", {}, d.a + " and " + d.b), d.here, d.there]), [0]) : ""]
    : h("p", {}, (one.here || one.there).title + ": only " + (one.here ? "here" : "there")))];
}

function showTables() {
  const number = state.entry, entry = entries[number];
  if (!entry) return;
  const kernels = entry.fused.steps;
  const refused = entry.decisions.filter(one => !one[0]), fused = entry.decisions.filter(one => one[0]);
  const byReason = [...new Set(refused.map(one => one[4]))];
  const decisionRows = list => tableOf(["", "values", "what decided, and what would have to change"], list.map(one => [one[3] + "×",
    h("div", { class: "mono" }, nameOf(entry, one[1]), h("br"), nameOf(entry, one[2])),
    h("div", {}, [texts[one[5]], texts[one[6]], texts[one[7]]].filter(Boolean).map(text => h("div", {}, text)))]), [0], i => pickPair(number, list[i][1], list[i][2]));
  tables.replaceChildren(...[againstPart(), h("h2", {}, entry.title + ": kernels"),
    tableOf(["#", "kernel", "bytes", "predicted", "measured", "computes"], kernels.map(step => [step.index, h("code", {}, step.name), withUnit(step.read + step.written, "B"), duration(step.predicted),
      step.measured === undefined ? "" : duration(step.measured), h("code", {}, step.values.map(value => nameOf(entry, value)).join(" "))]), [0, 2, 3, 4], i => pickKernel(number, i)),
    h("h2", { id: "refusals" }, entry.title + ": refusals by reason"),
    byReason.map(reason => {
      const own = refused.filter(one => one[4] === reason), [text, id] = reasonOf(reason);
      const sum = entry.reasons.find(one => one.text === text && one.reason === id);
      return h("details", { "data-reason": id }, h("summary", {}, counted(own.reduce((count, one) => count + one[3], 0), "refusal") + ": " + text + " (", h("code", {}, id), ")",
        sum && sum.seconds > 0 ? ", worth " + duration(sum.seconds) : "", sum && sum.final ? "; no kernel can lift them" : ""), decisionRows(own));
    }),
    h("details", {}, h("summary", {}, entry.title + ": " + counted(fused.reduce((count, one) => count + one[3], 0), "fusion")), decisionRows(fused)),
    entry.module ? h("details", { id: "module" }, h("summary", {}, entry.title + ": module"), h("pre", {}, entry.module)) : ""].flat(Infinity).filter(part => part !== ""));
}

// ---- search ----------------------------------------------------------------------------------

/// The number of a value by its name, or by that of the layer that stands in its place; -1: none.
function find(entry, name) {
  if (entry.number.has(name)) return entry.number.get(name);
  for (const section of entry.sections) {
    if (section.layer < 0 || !name.startsWith(section.stack)) continue;
    const layer = parseInt(name.slice(section.stack.length), 10);
    if (!(layer >= section.layer && layer < section.layer + section.count)) continue;
    const other = section.stack + section.layer + name.slice(section.stack.length + String(layer).length);
    if (entry.number.has(other)) return entry.number.get(other);
  }
  return -1;
}

function searchAll(query) {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean), found = [];
  if (!words.length) return found;
  const fits = text => { text = text.toLowerCase(); return words.every(word => text.includes(word)); };
  const order = [...new Set([state.entry, ...entries.keys()])];
  for (const number of order) {
    const entry = entries[number], named = find(entry, query.trim());
    if (named >= 0 && nameOf(entry, named) !== query.trim() && entry.isComputed(named))
      found.push({ kind: "value", text: query.trim() + ", shown as " + nameOf(entry, named), number, go: () => { pickValue(number, named); scrollToValue(named); } });
    entry.values.forEach((value, i) => {
      if (entry.isComputed(i) && fits("value " + value[0] + " " + value[1] + " " + sourceOf(value[0])))
        found.push({ kind: "value", text: value[0] + "  " + value[1], number, go: () => { pickValue(number, i); scrollToValue(i); } });
    });
    entry.fused.steps.forEach((step, i) => {
      if (fits("kernel " + step.index + " " + step.name)) found.push({ kind: "kernel", text: step.index + "  " + step.name, number, go: () => { pickKernel(number, i); scrollToValue(step.values[0]); } });
    });
    for (const reason of entry.reasons)
      if (fits("reason " + reason.reason + " " + reason.text)) found.push({ kind: "reason", text: reason.reason + ": " + reason.text, number, go: () => {
        enter(number);
        for (const part of tables.querySelectorAll("details[data-reason]"))
          if (part.dataset.reason === reason.reason) { part.open = true; part.scrollIntoView(); }
      } });
  }
  return found.slice(0, 60);
}

const field = h("input", { type: "search", id: "search", placeholder: "search values, kernels, reasons  ( / )", "aria-label": "search" });
const results = h("div", { class: "found off", role: "listbox", id: "found" });
let found = [], foundAt = 0;
function showFound() {
  results.classList.toggle("off", !found.length);
  results.replaceChildren(...found.map((one, i) => h("div", { role: "option", class: i === foundAt ? "at" : null, mousedown: event => { event.preventDefault(); takeFound(i); } },
    h("span", { class: "dim" }, one.kind + " "), h("code", {}, one.text), entries.length > 1 ? h("span", { class: "dim" }, "  " + entries[one.number].title) : "")));
}
function takeFound(i) {
  const one = found[i];
  found = [];
  showFound();
  if (one) one.go();
}
field.addEventListener("input", () => { found = searchAll(field.value); foundAt = 0; showFound(); });
field.addEventListener("blur", () => { found = []; showFound(); });
field.addEventListener("keydown", event => {
  if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    foundAt = Math.max(0, Math.min(found.length - 1, foundAt + (event.key === "ArrowDown" ? 1 : -1)));
    showFound();
    event.preventDefault();
  } else if (event.key === "Enter") { takeFound(foundAt); field.blur(); }
  else if (event.key === "Escape") { field.blur(); }
});

// ---- the page --------------------------------------------------------------------------------

const tabs = entries.map((entry, i) => h("button", { title: "show (" + (i + 1) + "); with Shift beside the others", "data-entry": i, click: event => showEntry(i, event.shiftKey) }, entry.title));
function pressTabs() { tabs.forEach((tab, i) => tab.setAttribute("aria-pressed", String(state.views.includes(i)))); }
function showEntry(number, beside) {
  if (!beside) state.views = [number];
  else if (!state.views.includes(number)) state.views.push(number);
  else if (state.views.length > 1) state.views = state.views.filter(view => view !== number);
  if (state.entry !== number || !state.views.includes(state.entry)) { state.entry = state.views.includes(number) ? number : state.views[0]; state.picks = []; state.kernel = null; }
  pressTabs();
  draw();
  showPanel();
  showTables();
}
const modes = choice(["fused", "unfused", "side by side"], () => state.mode, mode => { state.mode = mode; draw(); }, "before or after fusion (f)");

/// Reads the permalink.
function goToPlace() {
  const [what, title, first, second] = place.get(), number = entries.findIndex(entry => entry.title === title);
  if (number < 0) return;
  if (!state.views.includes(number)) showEntry(number, false);
  state.entry = number;
  const entry = entries[number];
  if (what === "why") {
    const [a, b] = [find(entry, first || ""), find(entry, second || "")];
    if (a >= 0 && b >= 0 && a !== b) pickPair(number, a, b);
  } else if (what === "value") {
    const value = find(entry, first || "");
    if (value >= 0) { state.picks = []; pickValue(number, value); scrollToValue(value); }
  } else if (what === "kernel") {
    const step = entry.fused.steps.findIndex(one => String(one.index) === first);
    if (step >= 0) pickKernel(number, step);
  }
}
addEventListener("hashchange", goToPlace);

addEventListener("keydown", event => {
  const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName);
  if (event.key === "Escape" && !typing) return clear();
  if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
  const box = event.target.closest && event.target.closest(".box, .chip");
  if ((event.key === "Enter" || event.key === " ") && box) { event.preventDefault(); box.dispatchEvent(new MouseEvent("click", { bubbles: true })); }
  else if (event.key === "/") { event.preventDefault(); field.focus(); field.select(); }
  else if (event.key === "m") copyText(markdown(), document.getElementById("copy"));
  else if (event.key === "f") { const names = ["fused", "unfused", "side by side"]; state.mode = names[(names.indexOf(state.mode) + 1) % 3]; modes.press(); draw(); }
  else if (event.key === "t") document.getElementById("theme").click();
  else if (/^[1-9]$/.test(event.key) && entries[event.key - 1]) showEntry(Number(event.key) - 1, false);
  else if ((event.key === "ArrowDown" || event.key === "ArrowUp") && box) {
    const all = [...box.closest("svg").querySelectorAll(box.classList.contains("chip") ? ".chip" : ".box")];
    const next = all[all.indexOf(box) + (event.key === "ArrowDown" ? 1 : -1)];
    if (next) { event.preventDefault(); next.focus(); }
  }
});

const shownFacts = [data.target, data.numerics + " numerics", "predicted times: " + data.times, "sinter " + data.sinter];
document.body.append(h("header", {}, h("h1", {}, data.model), h("p", { class: "facts" }, shownFacts.join(" · "), data.command ? [" · ", h("code", {}, data.command)] : ""),
  h("div", { class: "bar" }, h("div", { class: "group", role: "tablist" }, tabs), modes, h("div", { class: "search" }, field, results), themeButton()),
  h("div", { class: "legend" }, [["var(--time)", "time"], ["var(--bytes)", "bytes"], ["var(--call-line)", "library call"], ["var(--weight)", "weight"], ["var(--state)", "state"], ["var(--given)", "input"],
    ["var(--pick)", "picked"], ["var(--path)", "on the path"]].map(([color, name]) => h("span", {}, h("i", { style: "background: " + color }), name)), h("span", {}, "edges: as thick as their bytes"))),
h("main", {}, pictures, panel), tables);
pressTabs();
draw();
const linked = place.get();
showTables();
if (["why", "value", "kernel"].includes(linked[0])) goToPlace();
if (!state.picks.length && state.kernel === null) { if (linked[0] === "entry") goToPlace(); showPanel(); }
