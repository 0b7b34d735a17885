// The page of `sinter profile --html` and `sinter bench --html`: time by kernel and by class, a
// roofline, launches on a time line, and the cases of a benchmark.

const profile = data.profile, bench = data.bench;
// The classes of driver/step_class.h.
const CLASSES = { products: "#8e63c7", attention: "#3867d6", norms: "#20a39e", activations: "#6a994e", elementwise: "#5fa8d3", loss: "#c9485b", optimizer: "#b58900", copies: "#d9822b", "outside the plan": "#98a4b3" };
const WIDTH = 900;
let chosen = -1;

const sizesText = sizes => Object.entries(sizes).filter(([name, value]) => name !== "batch" || value !== 1).map(([name, value]) => name + " " + value).join(", ");
const colorOf = row => CLASSES[row.class] || "#98a4b3";
const unit = () => profile.phase === "decode" ? "token" : "call";

/// Bars with a name at the left and an amount at the right: rows of [name, seconds, color, text].
function bars(rows, go) {
  const most = Math.max(...rows.map(row => row[1]), 1e-12), height = 22, left = 300;
  return s("svg", { width: WIDTH, height: rows.length * height + 4, viewBox: `0 0 ${WIDTH} ${rows.length * height + 4}`, role: "group" },
    rows.map(([name, seconds, color, text], i) => s("g", { class: "bar-row", tabindex: go ? 0 : null, role: go ? "button" : null, "data-row": i, "aria-label": name + ", " + text,
      click: () => go && go(i), keydown: event => { if (go && event.key === "Enter") go(i); } },
    s("title", {}, name), s("text", { x: left - 8, y: i * height + 15, "text-anchor": "end" }, name.length > 40 ? name.slice(0, 39) + "…" : name),
    s("rect", { x: left, y: i * height + 3, width: Math.max(1, (WIDTH - left - 190) * seconds / most), height: 15, rx: 2, style: "fill: " + color }),
    s("text", { class: "small", x: left + Math.max(1, (WIDTH - left - 190) * seconds / most) + 8, y: i * height + 15 }, text))));
}

/// Operations a second over operations a byte, with the ceilings of memory and of products.
function roofline() {
  const rows = profile.rows.filter(row => row.flops > 0 && row.seconds > 0 && row.read_bytes + row.written_bytes > 0);
  const memory = profile.ceilings.read.per_s, products = profile.ceilings.gemm.per_s;
  if (!rows.length || !(memory > 0) || !(products > 0)) return h("p", { class: "dim" }, "No kernel of this profile does operations that are counted.");
  const intensity = row => row.flops / (row.read_bytes + row.written_bytes);
  const xs = rows.map(intensity).concat([products / memory]), low = Math.min(...xs) / 4, high = Math.max(...xs) * 8;
  const top = products * 2, bottom = Math.min(...rows.map(row => row.flops_per_s), low * memory) / 2, height = 340, left = 90, right = 20;
  const x = value => left + (WIDTH - left - right) * Math.log(value / low) / Math.log(high / low);
  const y = value => 10 + (height - 50) * (1 - Math.log(value / bottom) / Math.log(top / bottom));
  const ridge = products / memory, most = Math.max(...rows.map(row => row.share));
  const ticks = (from, to) => { const list = []; for (let at = Math.ceil(Math.log10(from)); at <= Math.log10(to); ++at) list.push(10 ** at); return list; };
  return s("svg", { width: WIDTH, height, viewBox: `0 0 ${WIDTH} ${height}`, id: "roofline", role: "group", "aria-label": "roofline" },
    ticks(low, high).map(tick => [s("path", { class: "axis", d: `M${x(tick)} 10 V${height - 40}` }), s("text", { class: "small", x: x(tick), y: height - 24, "text-anchor": "middle" }, String(tick))]),
    ticks(bottom, top).map(tick => [s("path", { class: "axis", d: `M${left} ${y(tick)} H${WIDTH - right}` }), s("text", { class: "small", x: left - 6, y: y(tick) + 4, "text-anchor": "end" }, withUnit(tick, "FLOP/s"))]),
    s("text", { class: "small", x: WIDTH / 2, y: height - 6, "text-anchor": "middle" }, "operations a byte"),
    s("path", { class: "roof", d: `M${x(low)} ${y(low * memory)} L${x(ridge)} ${y(products)} H${x(high)}` }),
    s("text", { class: "small", x: x(low) + 40, y: y(low * memory) + 4 }, "read " + withUnit(memory, "B/s")),
    s("text", { class: "small", x: WIDTH - right - 4, y: y(products) - 6, "text-anchor": "end" }, "products " + withUnit(products, "FLOP/s")),
    rows.map(row => s("circle", { class: "dot", cx: x(intensity(row)), cy: y(row.flops_per_s), r: 4 + 12 * Math.sqrt(row.share / most), style: "fill: " + colorOf(row), click: () => choose(profile.rows.indexOf(row)) },
      s("title", {}, row.kernel + ": " + withUnit(row.flops_per_s, "FLOP/s") + ", " + intensity(row).toPrecision(3) + " operations a byte"))));
}

/// The launches of the last token; a click chooses the kernel, the wheel and buttons change the scale.
function timeLine() {
  const launches = profile.launches || [];
  if (!launches.length) return h("p", { class: "dim" }, "The profile has no launches.");
  const end = Math.max(...launches.map(launch => launch[0] + launch[1])), streams = [...new Set(launches.map(launch => launch[3]))].sort((a, b) => a - b);
  const box = h("div", { class: "pictures", id: "timeline" });
  let scale = 1;
  const drawLine = () => {
    const width = WIDTH * scale, height = streams.length * 34 + 26, ticks = 10 * scale;
    box.replaceChildren(s("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": "launches on a time line" },
      Array.from({ length: ticks + 1 }, (_, i) => [s("path", { class: "axis", d: `M${i * width / ticks} 0 V${height - 18}` }),
        i < ticks && s("text", { class: "small", x: i * width / ticks + 2, y: height - 5 }, duration(end * i / ticks))]),
      launches.map(([start, seconds, row, stream]) => s("rect", { x: width * start / end, width: Math.max(0.6, width * seconds / end), y: streams.indexOf(stream) * 34 + 4, height: 24,
        style: "fill: " + (row < 0 ? CLASSES["outside the plan"] : colorOf(profile.rows[row])) + (chosen >= 0 && row !== chosen ? "; opacity: .25" : ""), click: () => choose(row) },
      s("title", {}, (row < 0 ? "outside the plan" : profile.rows[row].kernel) + ", " + duration(seconds) + " at " + duration(start))))));
  };
  timeLine.draw = drawLine;
  drawLine();
  const zoom = factor => { scale = Math.min(64, Math.max(1, scale * factor)); drawLine(); };
  return h("div", {}, h("p", { class: "buttons" }, h("button", { click: () => zoom(2) }, "longer (+)"), " ", h("button", { click: () => zoom(0.5) }, "shorter (−)"),
    profile.launches_left_out ? " " + profile.launches_left_out + " later launches are left out" : ""), box);
}

function markdown() {
  const lines = [];
  if (bench) {
    lines.push("**" + plain(bench.model) + "** on " + plain(bench.machine.device), "", "| case | plan | median | predicted | of ceiling | launches |" + (data.against ? " there |" : ""),
      "| --- | --- | ---: | ---: | ---: | ---: |" + (data.against ? " ---: |" : ""));
    bench.cases.forEach((one, i) => ["fused", "unfused"].forEach((plan, k) => lines.push("| " + (k ? "" : plain(one.name) + ", " + plain(sizesText(one.sizes))) + " | " + plan + " | " + duration(one[plan].median_s) + " | " +
      (one[plan].predicted_s === null ? "–" : duration(one[plan].predicted_s)) + " | " + percent(one[plan].of_ceiling) + " | " + one[plan].launches + " |" +
      (data.against ? " " + (data.against.cases[i] ? duration(data.against.cases[i][k]) : "–") + " |" : ""))));
    lines.push("");
  }
  if (profile) {
    lines.push("**" + plain(profile.model) + "**, " + plain(profile.phase) + ", " + plain(sizesText(profile.sizes)) + " on " + plain(profile.device) + ": " + duration(profile.untraced_s) + " a " + unit(), "",
      "| kernel | class | launches | time | share | of ceiling | bound by |", "| --- | --- | ---: | ---: | ---: | ---: | --- |");
    for (const row of profile.rows.slice(0, 20)) lines.push("| " + span(row.kernel) + " | " + plain(row.class) + " | " + row.launches + " | " + duration(row.seconds) + " | " + percent(row.share) + " | " + percent(row.of_ceiling) + " | " + plain(row.bound_by) + " |");
  }
  return lines.join("\n") + "\n\n<sub>sinter " + plain(data.sinter) + "</sub>\n";
}

const panel = h("aside", { id: "panel", "aria-live": "polite" });
function showPanel() {
  const row = profile && profile.rows[chosen], copy = h("p", { class: "buttons" }, h("button", { id: "copy", click: event => copyText(markdown(), event.currentTarget) }, "copy as Markdown"),
    row ? [" ", h("button", { click: () => choose(-1) }, "clear (Esc)")] : "");
  if (!row) return panel.replaceChildren(h("h2", {}, "A kernel"), h("p", { class: "dim" }, profile ? "Click a bar, a dot or a launch." : "`bench --kernels` profiles a token, too."), copy);
  const first = row.first_launch, facts = [["class", row.class], ["time", duration(row.seconds) + ", " + percent(row.share) + " of all kernels"], ["launches", row.launches + " a " + unit()],
    ["bytes", withUnit(row.read_bytes, "B") + " read, " + withUnit(row.written_bytes, "B") + " written"], ["rate", withUnit(row.bytes_per_s, "B/s") + ", " + percent(row.of_ceiling) + " of the " + row.ceiling + "'s ceiling"],
    ["operations", row.flops > 0 ? withUnit(row.flops_per_s, "FLOP/s") : "few"], ["bound by", row.bound_by],
    ["launch", `grid ${first.grid.join("×")}, block ${first.block.join("×")}, ${first.registers} registers a thread, ${withUnit(first.shared_bytes, "B")} shared a block`]];
  panel.replaceChildren(h("h2", {}, h("code", {}, row.kernel)), h("dl", {}, facts.map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)])),
    h("h3", {}, "Computes"), h("p", { class: "mono" }, row.computes.join(" ")), h("h3", {}, "Functions"), h("p", { class: "mono" }, row.functions.join(" ")), copy);
}
function choose(row) {
  chosen = row;
  place.set(row >= 0 ? ["kernel", profile.rows[row].kernel] : [""]);
  showPanel();
  if (timeLine.draw) timeLine.draw();
}

function profileParts() {
  if (!profile) return [];
  return [h("h2", {}, "Time by class"), bars(profile.classes.map(one => [one.class, one.seconds, CLASSES[one.class] || "#98a4b3", duration(one.seconds) + ", " + percent(one.share)])),
    h("h2", {}, "Time by kernel"), bars(profile.rows.slice(0, 40).map(row => [row.kernel, row.seconds, colorOf(row), duration(row.seconds) + ", " + percent(row.share) + ", " + row.launches + "×"]), choose),
    h("h2", {}, "Roofline"), roofline(), h("h2", {}, "Launches of a " + unit()), timeLine(),
    h("p", { class: "dim" }, `A ${unit()} takes ${duration(profile.untraced_s)}: kernels run for ${duration(profile.busy_s)}, idle for ${duration(profile.idle_s)}.`)];
}

function benchParts() {
  if (!bench) return [];
  const rows = [], lines = [];
  bench.cases.forEach((one, i) => ["fused", "unfused"].forEach((plan, k) => {
    const times = one[plan], title = k ? "" : one.name + ", " + sizesText(one.sizes), there = data.against && data.against.cases[i] ? data.against.cases[i][k] : 0;
    rows.push([one.name + ", " + sizesText(one.sizes) + ", " + plan, times.median_s, k ? "#98a4b3" : "#3867d6", duration(times.median_s) + (times.predicted_s ? ", predicted " + duration(times.predicted_s) : "")]);
    lines.push([title, plan, duration(times.median_s), times.predicted_s ? duration(times.predicted_s) : "–", duration(times.p95_s), percent(times.of_ceiling), times.launches, k ? "" : one.speedup.toFixed(2)]
      .concat(data.against ? [there ? duration(there) : "–", there ? (times.median_s >= there ? "+" : "") + (100 * (times.median_s / there - 1)).toFixed(1) + " %" : ""] : []));
  }));
  return [h("h2", {}, "Cases"), bars(rows), tableOf(["case", "plan", "median", "predicted", "p95", "of ceiling", "launches", "speedup"].concat(data.against ? ["there", "change"] : []), lines, [2, 3, 4, 5, 6, 7, 8, 9]),
    data.against ? h("p", { class: "dim" }, "there: " + data.against.model + " on " + data.against.device) : ""];
}

addEventListener("keydown", event => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape" && profile) choose(-1);
  else if (event.key === "m") copyText(markdown(), document.getElementById("copy"));
  else if (event.key === "t") document.getElementById("theme").click();
});
const subject = bench ? [bench.machine.device, bench.machine.driver, counted(bench.repeat, "sample") + " of each plan"] : [profile.device, profile.phase, sizesText(profile.sizes), profile.fused ? "fused" : "an op a kernel"];
document.body.append(h("header", {}, h("h1", {}, (bench || profile).model), h("p", { class: "facts" }, subject.concat(["sinter " + data.sinter]).filter(Boolean).join(" · ")),
  h("div", { class: "bar" }, themeButton()), h("div", { class: "legend" }, Object.entries(CLASSES).map(([name, color]) => h("span", {}, h("i", { style: "background: " + color }), name)))),
h("main", {}, h("div", {}, benchParts(), profileParts()), panel));
showPanel();
const linked = place.get();
if (linked[0] === "kernel" && profile) choose(profile.rows.findIndex(row => row.kernel === linked[1]));
