// Functions that all pages share. Text of any origin reaches the page as text nodes only.

const data = JSON.parse(document.getElementById("sinter-data").textContent);
const sources = JSON.parse(document.getElementById("sinter-sources").textContent);

/// An element; an attribute with a function for a value is a listener, children are nodes or text.
function element(space, tag, attributes, children) {
  const made = space ? document.createElementNS(space, tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (typeof value === "function") made.addEventListener(name, value);
    else if (value !== undefined && value !== null && value !== false) made.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children.flat(Infinity))
    if (child !== undefined && child !== null && child !== false && child !== "")
      made.append(child instanceof Node ? child : String(child));
  return made;
}
const h = (tag, attributes, ...children) => element(null, tag, attributes, children);
const s = (tag, attributes, ...children) => element("http://www.w3.org/2000/svg", tag, attributes, children);

/// Three digits and a unit, as the reports for terminals have them.
function withUnit(amount, unit) {
  const prefixes = ["", "K", "M", "G", "T", "P", "E"];
  let prefix = 0;
  while (amount >= 999.5 && prefix + 1 < prefixes.length) { amount /= 1000; ++prefix; }
  const digits = prefix === 0 || amount >= 99.95 ? 0 : amount >= 9.995 ? 1 : 2;
  return amount.toFixed(digits) + " " + prefixes[prefix] + unit;
}
function duration(seconds) {
  const digits = value => value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  for (const [unit, name] of [[1, "s"], [1e-3, "ms"]])
    if (seconds >= unit * 0.9995) return (seconds / unit).toFixed(digits(seconds / unit)) + " " + name;
  return (seconds * 1e6).toFixed(digits(seconds * 1e6)) + " µs";
}
const percent = share => (100 * share).toFixed(1) + " %";
const counted = (count, noun, plural) => count + " " + (count === 1 ? noun : plural || noun + "s");

/// Text as a code span of Markdown that also stands in a table.
function span(text) {
  text = String(text).replace(/\s+/g, " ");
  const runs = text.match(/`+/g) || [];
  const fence = "`".repeat(runs.reduce((most, run) => Math.max(most, run.length), 0) + 1);
  const pad = text.startsWith("`") || text.endsWith("`") ? " " : "";
  return fence + pad + text.replace(/\|/g, "\\|") + pad + fence;
}
/// Text in Markdown that is not code: characters with a meaning are escaped.
const plain = text => String(text).replace(/\s+/g, " ").replace(/[\\`*_{}[\]<>#|~]/g, "\\$&");

async function copyText(text, button) {
  let done = false;
  try { await navigator.clipboard.writeText(text); done = true; } catch (error) {
    const field = h("textarea", { style: "position: fixed; opacity: 0" });
    field.value = text;
    document.body.append(field);
    field.select();
    done = document.execCommand("copy");
    field.remove();
  }
  const before = button.textContent;
  button.textContent = done ? "copied" : "copy failed";
  setTimeout(() => { button.textContent = before; }, 1200);
}

/// The place behind the # of the address, as a list of names; set() does not load the page anew.
const place = {
  get() {
    try { return location.hash.slice(1).split("/").map(decodeURIComponent); } catch (error) { return []; }
  },
  set(parts) {
    const hash = "#" + parts.map(encodeURIComponent).join("/");
    try { if (location.hash !== hash) history.replaceState(null, "", hash); } catch (error) { /* in a frame of a notebook */ }
  },
};

function themeButton() {
  const root = document.documentElement, names = ["auto", "light", "dark"];
  let at = 0;
  return h("button", { title: "light or dark (t)", id: "theme", click: event => {
    at = (at + 1) % names.length;
    if (at) root.dataset.theme = names[at]; else delete root.dataset.theme;
    event.currentTarget.textContent = "theme: " + names[at];
  } }, "theme: auto");
}

/// A group of buttons of which one is pressed.
function choice(names, get, set, title) {
  const buttons = names.map(name => h("button", { click: () => { set(name); press(); } }, name));
  const press = () => buttons.forEach((button, i) => button.setAttribute("aria-pressed", String(names[i] === get())));
  press();
  return Object.assign(h("div", { class: "group", title }, buttons), { press });
}

/// Rows of [cells..]; a cell may be a node. `numbers`: columns at the right. `go(i)`: a click on row i.
function tableOf(heads, rows, numbers, go) {
  const cell = (tag, content, i) => h(tag, { class: numbers.includes(i) ? "n" : null }, content);
  return h("table", {}, h("thead", {}, h("tr", {}, heads.map((head, i) => cell("th", head, i)))),
    h("tbody", {}, rows.map((row, at) => h("tr", go ? { class: "go", tabindex: 0, click: () => go(at),
      keydown: event => { if (event.key === "Enter") go(at); } } : {}, row.map((content, i) => cell("td", content, i))))));
}

/// Everything that is folded is open on paper.
addEventListener("beforeprint", () => document.querySelectorAll("details").forEach(part => { part.open = true; }));
