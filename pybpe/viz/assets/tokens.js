// A text as colored tokens. Pointing at a token or focusing it shows a hint; Enter or a click opens its details.

const BLOCK_TOKENS = 400;
const COLORS = 6; // the number of the style sheet's classes c0, c1, ...

/** The box that describes the token that is under the pointer or has the focus. */
const hint = {
  box: null,

  token: null,

  show(token, lines) {
    if (this.box === null) {
      this.box = document.body.appendChild(element("div", { id: "hint", role: "tooltip" }));
      document.addEventListener("scroll", () => this.move(), { capture: true, passive: true });
    }
    this.token = token;
    this.box.replaceChildren(...lines.map((line) => element("div", {}, ...line)));
    this.box.classList.add("shown");
    token.setAttribute("aria-describedby", "hint");
    this.move();
  },

  /** Puts the box above its token, or below it if there is no room above. */
  move() {
    if (this.token === null) return;
    const place = this.token.getClientRects()[0] ?? this.token.getBoundingClientRect();
    const { width, height } = this.box.getBoundingClientRect();
    const left = Math.min(Math.max(8, place.left), document.documentElement.clientWidth - width - 8);
    const above = place.top - height - 6;
    this.box.style.left = `${left}px`;
    this.box.style.top = `${above > 4 ? above : place.bottom + 6}px`;
  },

  hide() {
    this.token?.removeAttribute("aria-describedby");
    this.token = null;
    this.box?.classList.remove("shown");
  },
};

/** The tokens of one tokenizer for one text. */
class TokenView {
  /**
   * @param tokenizer a Tokenizer
   * @param label a name of the view for screen readers
   * @param onOpen called with an id when a token is opened
   */
  constructor(tokenizer, label, onOpen) {
    this.tokenizer = tokenizer;
    this.onOpen = onOpen;
    this.peers = []; // the views next to this one
    this.marked = []; // their tokens that contain bytes of the token under the pointer
    this.flow = element("div", {
      class: "flow",
      role: "group",
      "aria-label": `${label}. Arrow keys move from token to token; Enter opens a token.`,
      onpointerover: (event) => this.point(event.target),
      onpointerleave: () => this.point(null),
      onfocusin: (event) => this.point(event.target),
      onfocusout: () => this.point(null),
      onclick: (event) => this.open(this.indexOf(event.target)),
      onkeydown: (event) => this.key(event),
    });
    this.show([]);
  }

  show(ids) {
    this.ids = ids;
    this.bytes = null; // the bytes of all ids, once they are needed
    this.starts = [0]; // byte offsets; one more than there are tokens
    for (const id of ids) this.starts.push(this.starts.at(-1) + this.tokenizer.tokens[id].length);
    this.counts = new Map();
    for (const id of ids) this.counts.set(id, (this.counts.get(id) ?? 0) + 1);
    this.spans = ids.map((id, i) => this.span(id, i));
    this.spans[0]?.setAttribute("tabindex", "0"); // Tab moves to the group, arrow keys move inside it
    this.flow.replaceChildren(...this.blocks());
  }

  /** Puts whole lines into blocks, so that the browser lays out only the blocks in view. */
  blocks() {
    const blocks = [];
    let full = true;
    for (const span of this.spans) {
      if (full) blocks.push(element("div", { class: "block" }));
      const block = blocks.at(-1);
      block.append(span);
      // A line ends after a token, never inside it: otherwise its box would continue, empty, on the next line.
      if (span.endsLine) block.append("\n");
      full = span.endsLine && block.childElementCount >= BLOCK_TOKENS;
    }
    return blocks;
  }

  span(id, i) {
    const bytes = this.tokenizer.tokens[id];
    const special = this.tokenizer.specialIds.has(id);
    const kind = special ? "special" : `c${i % COLORS}`;
    const nodes = tokenNodes(bytes);
    const endsLine = bytes.endsWith("\n");
    if (endsLine) nodes.at(-1).textContent = "";
    const lines = bytes.slice(0, -1).includes("\n") ? " lines" : "";
    const label = /^\s+$/.test(bytes) ? `white space ${tokenText(bytes)}` : null;
    const properties = { class: `token ${kind}${lines}`, role: "button", tabindex: "-1", "aria-label": label };
    const span = element("span", properties, ...nodes);
    span.dataset.index = i;
    span.endsLine = endsLine;
    return span;
  }

  /** Marks the tokens whose text another view splits differently. */
  markDifferences(other) {
    if (!this.hasTextOf(other)) return;
    const cuts = new Set(other.starts);
    this.spans.forEach((span, i) => {
      let same = cuts.has(this.starts[i]) && cuts.has(this.starts[i + 1]);
      if (same) same = other.overlapping(this.starts[i], this.starts[i + 1]).length === 1;
      span.classList.toggle("differs", !same);
    });
  }

  indexOf(node) {
    const span = node?.closest?.(".token");
    return span && this.flow.contains(span) ? Number(span.dataset.index) : -1;
  }

  /** Shows the hint for a token, and marks the tokens of the other views that contain its bytes. */
  point(node) {
    const index = this.indexOf(node);
    for (const span of this.marked) span.classList.remove("peer");
    this.marked = [];
    hint.hide();
    if (index < 0) return;
    for (const peer of this.peers.filter((view) => this.hasTextOf(view))) {
      this.marked.push(...peer.overlapping(this.starts[index], this.starts[index + 1]));
    }
    for (const span of this.marked) span.classList.add("peer");
    hint.show(this.spans[index], this.describe(index));
  }

  describe(index) {
    const id = this.ids[index];
    const bytes = this.tokenizer.tokens[id];
    const shown = bytes.length > 24 ? `${hex(bytes.slice(0, 24))} …` : hex(bytes);
    const times = this.counts.get(id);
    const whole = this.wholeCharacters(index);
    return [
      [element("b", {}, String(id)), ` ${tokenText(bytes).slice(0, 60)}`],
      [element("code", {}, shown), ` ${plural(bytes.length, "byte")}`],
      ...(whole === null ? [] : [[`part of ${tokenText(whole)}`]]),
      [times === 1 ? "once in this text" : `${number(times)} times in this text`],
    ];
  }

  /** Returns the whole characters that a token contains a part of; null if the token splits no character. */
  wholeCharacters(index) {
    this.bytes ??= this.tokenizer.decode(this.ids);
    const continues = (at) => (this.bytes.charCodeAt(at) & 0xc0) === 0x80;
    let start = this.starts[index];
    let end = this.starts[index + 1];
    for (let left = 3; left > 0 && start > 0 && continues(start); left--) start--;
    for (let left = 3; left > 0 && continues(end); left--) end++;
    const whole = this.bytes.slice(start, end);
    const isCut = end - start > this.starts[index + 1] - this.starts[index];
    return isCut && !/\p{Surrogate}/u.test(decodeUtf8(whole)) ? whole : null;
  }

  /** Returns whether byte offsets mean the same in another view. A different normalizer gives a different text, and so
   * may special tokens that take white space, or a space that is added. */
  hasTextOf(other) {
    const [one, two] = [this.tokenizer.data, other.tokenizer.data];
    return one.normalizer === two.normalizer && !one.rewrites && !two.rewrites;
  }

  /** Returns the tokens that contain a byte of start..end. */
  overlapping(start, end) {
    let low = 0;
    let high = this.ids.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.starts[middle + 1] > start) high = middle;
      else low = middle + 1;
    }
    const found = [];
    for (let i = low; i < this.ids.length && this.starts[i] < end; i++) found.push(this.spans[i]);
    return found;
  }

  open(index) {
    if (index < 0) return;
    this.moveFocus(index);
    hint.hide();
    this.onOpen(this.ids[index]);
  }

  moveFocus(index) {
    this.flow.querySelector("[tabindex='0']")?.setAttribute("tabindex", "-1");
    this.spans[index].setAttribute("tabindex", "0");
    this.spans[index].focus();
  }

  key(event) {
    const index = this.indexOf(event.target);
    const last = this.ids.length - 1;
    const targets = {
      ArrowRight: () => Math.min(index + 1, last),
      ArrowLeft: () => Math.max(index - 1, 0),
      ArrowDown: () => this.lineNeighbour(index, 1),
      ArrowUp: () => this.lineNeighbour(index, -1),
      Home: () => 0,
      End: () => last,
    };
    if (index < 0) return;
    if (event.key === "Escape") hint.hide();
    else if (event.key === "Enter" || event.key === " ") this.open(index);
    else if (targets[event.key]) this.moveFocus(targets[event.key]());
    else return;
    event.preventDefault();
  }

  /** Returns the nearest token on the line below (1) or above (-1). */
  lineNeighbour(index, direction) {
    const here = this.spans[index].getBoundingClientRect();
    let best = index;
    let line = null;
    for (let i = index + direction; i >= 0 && i < this.spans.length; i += direction) {
      const there = this.spans[i].getBoundingClientRect();
      if ((there.top - here.top) * direction < here.height / 2) continue;
      line ??= there.top;
      if ((there.top - line) * direction > here.height / 2) break;
      const distance = (span) => Math.abs(span.getBoundingClientRect().left - here.left);
      if (best === index || distance(this.spans[i]) < distance(this.spans[best])) best = i;
    }
    return best;
  }
}
