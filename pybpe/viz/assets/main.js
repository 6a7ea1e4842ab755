// Builds the page.

const LIVE_MAX = 20_000; // characters that the live box encodes
const LIVE_START = 300; // characters of the text that the live box contains at first
const LIVE_DELAY = 120; // milliseconds without a keystroke before the live box encodes

const page = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);

const shadows = readShadows(page.classes);
const tokenizers = page.tokenizers.map((data) => new Tokenizer(data, shadows));
const details = new Details(byId("details"));

function unpackIds(base64) {
  const packed = new Packed(base64);
  const ids = [];
  while (!packed.done) ids.push(packed.number());
  return ids;
}

const entries = tokenizers.map((tokenizer) => ({ tokenizer, ids: unpackIds(tokenizer.data.ids), counts: new Map() }));
for (const { ids, counts } of entries) for (const id of ids) counts.set(id, (counts.get(id) ?? 0) + 1);

const openToken = (entry, id) => details.open(entry.tokenizer, id, entry.counts);

// ---------------------------------------------------------------------------------------------------
// The heading of the page

function patternName({ pattern, normalizer }) {
  const name = pattern.name ?? "a custom pattern";
  return [name, pattern.digits ? `digits=${pattern.digits}` : "", normalizer ?? ""].filter(Boolean).join(", ");
}

function showHead() {
  const shown = page.shown_bytes;
  const facts = [page.source, plural(page.total_bytes, "byte")].filter(Boolean).join(", ");
  byId("about").textContent = facts;
  if (shown < page.total_bytes) {
    byId("cut").hidden = false;
    byId("cut").textContent =
      `This page shows the first ${number(shown)} of ${number(page.total_bytes)} bytes. All of its numbers describe that part.`;
  }
}

// ---------------------------------------------------------------------------------------------------
// Views side by side

/** Returns the difference in tokens from the first tokenizer, such as "−12.5%". */
function relative(count, first) {
  if (first === 0) return "";
  const percent = (100 * (count - first)) / first;
  return `${percent > 0 ? "+" : percent < 0 ? "−" : "±"}${Math.abs(percent).toFixed(1)}%`;
}

class Comparison {
  /** Makes a panel for each tokenizer. */
  constructor(place, label, withIds) {
    this.panels = entries.map((entry) => {
      const view = new TokenView(entry.tokenizer, `${label}, ${entry.tokenizer.name}`, (id) => openToken(entry, id));
      const summary = element("p", { class: "summary" });
      const facts = `${number(entry.tokenizer.data.size)} tokens, ${patternName(entry.tokenizer.data)}`;
      const head = element("header", {}, element("h3", {}, entry.tokenizer.name), element("p", { class: "quiet" }, facts));
      const list = element("p", { class: "ids" });
      place.append(element("article", { class: "panel" }, head, summary, view.flow, ...(withIds ? [list, copyButton(list)] : [])));
      return { view, summary, list };
    });
    place.classList.add(`columns-${entries.length}`);
    for (const { view } of this.panels) view.peers = this.panels.map((panel) => panel.view).filter((v) => v !== view);
  }

  /** Shows one list of ids for each tokenizer. A list that is null has a reason, which is shown instead. */
  show(lists, bytes, reasons = []) {
    this.panels.forEach(({ view, summary, list }, i) => {
      list.textContent = lists[i]?.join(" ") ?? "";
      if (lists[i] === null) {
        view.show([]);
        summary.replaceChildren(element("span", { class: "warning" }, reasons[i]));
        return;
      }
      view.show(lists[i]);
      const count = lists[i].length;
      const first = lists[0]?.length ?? 0;
      summary.replaceChildren(
        element("strong", {}, number(count)),
        count === 1 ? " token" : " tokens",
        element("span", { class: "quiet" }, count ? ` · ${decimals(bytes / count)} bytes per token` : ""),
        i > 0 && first ? element("span", { class: count <= first ? "good" : "bad" }, ` ${relative(count, first)}`) : "",
      );
    });
    const [first, ...others] = this.panels;
    for (const { view } of others) view.markDifferences(first.view);
    if (others.length) first.view.markDifferences(others[0].view);
  }
}

// ---------------------------------------------------------------------------------------------------
// The live box

/** Returns why this page cannot encode with a tokenizer; null if its encoder returns the same ids as Python's. */
function distrust({ tokenizer, ids }) {
  if (!tokenizer.words) return `This page cannot encode with this tokenizer: ${tokenizer.whyNotLive}.`;
  const again = tokenizer.encode(decodeUtf8(tokenizer.decode(ids)));
  const same = again.length === ids.length && again.every((id, i) => id === ids[i]);
  return same ? null : "In this browser, the page's encoder returns wrong ids for the text above, so it is off.";
}

/** Returns the beginning of the text, in whole characters; "" if the text is empty. */
function beginning({ tokenizer, ids }) {
  return Array.from(wellFormed(decodeUtf8(tokenizer.decode(ids.slice(0, 4 * LIVE_START))))).slice(0, LIVE_START).join("");
}

/** Returns a button that copies the text of an element. It needs no permission, which a file or a frame may lack. */
function copyButton(source) {
  const copy = () => {
    const selection = getSelection();
    selection.selectAllChildren(source);
    button.textContent = document.execCommand("copy") ? "Copied" : "Press Ctrl-C";
  };
  const button = element("button", { type: "button", class: "copy", onclick: copy }, "Copy ids");
  return button;
}

function startLive() {
  const box = byId("typed");
  box.value = beginning(entries[0]) || box.value;
  const reasons = entries.map(distrust);
  const comparison = new Comparison(byId("live-panels"), "What you type", true);
  const update = () => {
    const typed = box.value.slice(0, LIVE_MAX);
    const text = wellFormed(typed);
    const lists = tokenizers.map((tokenizer, i) => (reasons[i] === null ? tokenizer.encode(text) : null));
    comparison.show(lists, encodeUtf8(text).length, reasons);
    const counts = lists.map((ids, i) => (ids ? `${tokenizers[i].name}: ${plural(ids.length, "token")}` : ""));
    const cut = box.value.length > LIVE_MAX ? `This page encodes only the first ${number(LIVE_MAX)} characters. ` : "";
    const length = plural(Array.from(text).length, "character");
    byId("live-status").textContent = cut + [length, ...counts.filter(Boolean)].join(", ");
  };
  let timer = 0;
  box.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(update, LIVE_DELAY);
  });
  const custom = tokenizers.some((tokenizer) => tokenizer.data.pattern.custom && tokenizer.words);
  const normal = tokenizers.some((tokenizer) => tokenizer.data.normalizer !== null);
  const notes = [`Built-in patterns use the character classes of Unicode ${page.unicode}, which this page contains.`];
  if (custom) notes.push("A custom pattern uses your browser's classes, so it may split new characters differently.");
  if (normal) notes.push("Your browser normalizes the text, so new characters may differ.");
  byId("live-note").textContent = notes.join(" ");
  update();
}

// ---------------------------------------------------------------------------------------------------

function start() {
  showHead();
  const comparison = new Comparison(byId("text-panels"), "The text", false);
  comparison.show(entries.map((entry) => entry.ids), page.shown_bytes);
  byId("differences").closest("label").hidden = entries.length === 1;
  byId("whitespace").addEventListener("input", (event) => {
    document.body.classList.toggle("marks", event.target.checked);
  });
  byId("differences").addEventListener("input", (event) => {
    document.body.classList.toggle("differences", event.target.checked);
  });
  startLive();
  new Vocabulary(byId("vocabulary"), entries, openToken);
  const charts = [lengthChart(tokenizers)];
  if (entries.every((entry) => entry.ids.length > 0)) {
    charts.push(frequencyChart(entries), compressionChart(tokenizers, page.shown_bytes));
  }
  byId("charts-place").append(...charts);
  document.body.classList.add("ready");
}

start();
