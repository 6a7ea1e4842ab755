// The list of the vocabulary, which can be searched.

const PAGE_LENGTH = 96;

/** Returns a function that says whether a token matches a query: an id ("#300"), bytes ("0x e4 b8"), or text. */
function vocabularyFilter(query) {
  if (/^#\d+$/.test(query)) return (bytes, id) => id === Number(query.slice(1));
  if (/^0x[\da-f\s]*$/i.test(query)) {
    const digits = query.slice(2).replace(/\s/g, "");
    const wanted = (digits.match(/../g) ?? []).map((pair) => String.fromCharCode(parseInt(pair, 16))).join("");
    return (bytes) => bytes.includes(wanted);
  }
  const wanted = encodeUtf8(wellFormed(query.replaceAll("·", " ")));
  return (bytes) => bytes.includes(wanted);
}

const VOCABULARY_ORDERS = {
  id: () => (a, b) => a - b,
  longest: (tokenizer) => (a, b) => tokenizer.tokens[b].length - tokenizer.tokens[a].length || a - b,
  frequent: (_, counts) => (a, b) => (counts.get(b) ?? 0) - (counts.get(a) ?? 0) || a - b,
};

class Vocabulary {
  /** @param entries [{tokenizer, counts}]; the user chooses one of them */
  constructor(section, entries, onOpen) {
    this.entries = entries;
    this.onOpen = onOpen;
    this.field = section.querySelector("#query");
    this.which = section.querySelector("#which");
    this.order = section.querySelector("#order");
    this.status = section.querySelector("#found");
    this.list = section.querySelector("#entries");
    this.more = section.querySelector("#more");
    entries.forEach(({ tokenizer }, i) => this.which.append(element("option", { value: i }, tokenizer.name)));
    this.which.closest("label").hidden = entries.length === 1;
    for (const control of [this.field, this.which, this.order]) control.addEventListener("input", () => this.search());
    this.more.addEventListener("click", () => this.extend());
    this.search();
  }

  search() {
    this.entry = this.entries[Number(this.which.value)];
    const { tokenizer, counts } = this.entry;
    const wanted = vocabularyFilter(this.field.value);
    this.found = [];
    tokenizer.tokens.forEach((bytes, id) => {
      if (bytes && wanted(bytes, id)) this.found.push(id);
    });
    this.found.sort(VOCABULARY_ORDERS[this.order.value](tokenizer, counts));
    this.list.replaceChildren();
    this.extend();
  }

  extend() {
    const shown = this.list.childElementCount;
    const next = this.found.slice(shown, shown + PAGE_LENGTH);
    this.list.append(...next.map((id) => this.item(id)));
    const all = shown + next.length;
    this.status.textContent = `${plural(this.found.length, "token")} found, ${number(all)} shown`;
    this.more.hidden = all === this.found.length;
    if (shown > 0) this.list.children[shown]?.querySelector("button").focus();
  }

  item(id) {
    const { tokenizer, counts } = this.entry;
    const button = tokenButton(tokenizer, id, () => this.onOpen(this.entry, id));
    const count = counts.get(id);
    const note = count ? element("span", { class: "quiet" }, `×${number(count)}`) : "";
    return element("li", {}, element("span", { class: "id" }, String(id)), button, note);
  }
}
