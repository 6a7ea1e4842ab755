// The details of one token: its bytes, how it is merged, and which tokens are merged from it.

const TREE_MAX_BYTES = 48; // a wider tree is hard to read
const STEPS_MAX_BYTES = 300;
const LIST_MAX = 24;

const LEAST_WIDTH = 26; // the width of the narrowest box
const BOX_PADDING = 14;
const LEAF_GAP = 2;
const LEAST_SCALE = 0.7; // a wide tree is drawn smaller, down to this; then it scrolls
const LEVEL_HEIGHT = 54;
const BOX_HEIGHT = 26;
const CHARACTER_WIDTH = 8;

/** Returns the tree of merges that makes a token: {id, rank, parts, level, size}; a leaf has no parts. */
function mergeTree(tokenizer, id) {
  const rank = tokenizer.madeBy.get(id);
  if (rank === undefined || tokenizer.tokens[id].length < 2) return { id, parts: [], level: 0, size: 1 };
  const parts = tokenizer.merges[rank].slice(0, 2).map((part) => mergeTree(tokenizer, part));
  return {
    id,
    rank,
    parts,
    level: 1 + Math.max(parts[0].level, parts[1].level),
    size: parts[0].size + parts[1].size,
  };
}

/** Returns the merges of a tree, in the order of their ranks. */
function mergeSteps(tree) {
  const steps = [];
  const collect = (node) => {
    node.parts.forEach(collect);
    if (node.parts.length) steps.push(node);
  };
  collect(tree);
  return steps.sort((a, b) => a.rank - b.rank);
}

const boxWidth = (text) => Math.max(LEAST_WIDTH, [...text].length * CHARACTER_WIDTH + BOX_PADDING);

/** Returns the width of the widest leaf, including the gap to the next one. */
function leafWidth(tokenizer, node) {
  if (node.parts.length) return Math.max(...node.parts.map((part) => leafWidth(tokenizer, part)));
  return Math.min(boxWidth(tokenText(tokenizer.tokens[node.id])), 2 * LEAST_WIDTH) + LEAF_GAP;
}

/** Draws a tree with its leaves in one row at the bottom. */
function drawTree(tokenizer, tree, onOpen) {
  const leaf = leafWidth(tokenizer, tree);
  const lines = element("svg:g", { class: "branches" });
  const boxes = element("svg:g", {});
  const width = tree.size * leaf;
  const height = tree.level * LEVEL_HEIGHT + BOX_HEIGHT + 2;
  const place = (node, firstLeaf) => {
    const y = height - 1 - BOX_HEIGHT - node.level * LEVEL_HEIGHT;
    let next = firstLeaf;
    const xs = node.parts.map((part) => {
      const x = place(part, next);
      next += part.size;
      return x;
    });
    const x = node.parts.length ? (xs[0] + xs[1]) / 2 : (firstLeaf + 0.5) * leaf;
    node.parts.forEach((part, i) => {
      const end = height - 1 - BOX_HEIGHT - part.level * LEVEL_HEIGHT;
      const middle = y + BOX_HEIGHT + 12;
      const d = `M${x},${y + BOX_HEIGHT} C${x},${middle + 8} ${xs[i]},${middle - 8} ${xs[i]},${end}`;
      lines.append(element("svg:path", { d }));
    });
    boxes.append(drawNode(tokenizer, node, x, y, node.size * leaf - LEAF_GAP, onOpen));
    return x;
  };
  place(tree, 0);
  const label = `Merge tree of ${tokenText(tokenizer.tokens[tree.id])}: the steps are listed below`;
  const drawing = element("svg:svg", { viewBox: `0 0 ${width} ${height}`, width, height, "aria-label": label });
  drawing.style.minWidth = `${Math.round(LEAST_SCALE * width)}px`;
  drawing.append(lines, boxes);
  return element("div", { class: "tree", role: "group", tabindex: "0", "aria-label": label }, drawing);
}

function drawNode(tokenizer, node, x, y, room, onOpen) {
  const text = tokenText(tokenizer.tokens[node.id]);
  const width = Math.min(room, boxWidth(text));
  const kind = node.parts.length ? "node" : "node leaf";
  const title = node.rank === undefined ? `token ${node.id}, no merge` : `token ${node.id}, merge ${node.rank}`;
  const box = { x: x - width / 2, y, width, height: BOX_HEIGHT, rx: 6 };
  const shown = element("svg:text", { x, y: y + 17.5, "text-anchor": "middle" }, text);
  const needed = [...text].length * CHARACTER_WIDTH;
  if (needed > width - 6) shown.setAttribute("font-size", Math.max(8, (13 * (width - 6)) / needed));
  return element(
    "svg:g",
    { class: kind, onclick: () => onOpen(node.id) },
    element("svg:title", {}, `${text}: ${title}`),
    element("svg:rect", box),
    shown,
  );
}

/** Returns a button that shows a token and opens its details. */
function tokenButton(tokenizer, id, onOpen) {
  const label = `token ${id}: ${tokenText(tokenizer.tokens[id])}`;
  const button = element("button", { type: "button", class: "chip", "aria-label": label, onclick: () => onOpen(id) });
  button.append(...tokenNodes(tokenizer.tokens[id]));
  return button;
}

class Details {
  constructor(dialog) {
    this.dialog = dialog;
    this.cameFrom = null;
    dialog.addEventListener("keydown", (event) => {
      if (event.key === "Escape") this.close();
    });
  }

  open(tokenizer, id, counts) {
    if (!this.dialog.open) this.cameFrom = document.activeElement;
    const onOpen = (other) => this.open(tokenizer, other, counts);
    const heading = element("h2", { tabindex: "-1", id: "details-heading" }, `Token ${id}`);
    const close = element("button", { type: "button", class: "close", onclick: () => this.close() }, "Close");
    this.dialog.replaceChildren(
      element("div", { class: "details-head" }, heading, close),
      element("p", { class: "specimen" }, element("span", { class: "token c0 lines" }, ...this.specimen(tokenizer, id))),
      this.facts(tokenizer, id, counts),
      ...this.origin(tokenizer, id, onOpen),
      ...this.uses(tokenizer, id, onOpen),
    );
    if (!this.dialog.open) this.dialog.show();
    this.dialog.scrollTop = 0;
    heading.focus({ preventScroll: true });
  }

  close() {
    this.dialog.close();
    this.cameFrom?.focus();
  }

  specimen(tokenizer, id) {
    const bytes = tokenizer.tokens[id];
    return bytes ? tokenNodes(bytes) : ["unused id"];
  }

  facts(tokenizer, id, counts) {
    const bytes = tokenizer.tokens[id];
    const rank = tokenizer.madeBy.get(id);
    const special = tokenizer.specialIds.has(id);
    const rows = [
      ["Tokenizer", tokenizer.name],
      ["Bytes", element("code", {}, hex(bytes))],
      ["Length", `${plural(bytes.length, "byte")}, ${plural([...decodeUtf8(bytes)].length, "character")}`],
      ["Kind", special ? "special token" : rank === undefined ? "not merged from others" : `made by merge ${number(rank)}`],
      ["In the text", `${plural(counts.get(id) ?? 0, "time")}`],
    ];
    return element("dl", {}, ...rows.flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, value)]));
  }

  origin(tokenizer, id, onOpen) {
    if (!tokenizer.madeBy.has(id)) return [];
    const heading = element("h3", {}, "How it is merged");
    if (tokenizer.tokens[id].length > STEPS_MAX_BYTES) return [heading, element("p", {}, "Too many steps to list.")];
    const tree = mergeTree(tokenizer, id);
    const button = (part) => tokenButton(tokenizer, part.id, onOpen);
    const steps = mergeSteps(tree).map((step) =>
      element(
        "li",
        {},
        button(step.parts[0]),
        " + ",
        button(step.parts[1]),
        " → ",
        button(step),
        element("span", { class: "quiet" }, ` merge ${number(step.rank)}`),
      ),
    );
    const drawn = tokenizer.tokens[id].length <= TREE_MAX_BYTES;
    return [
      heading,
      ...(drawn ? [drawTree(tokenizer, tree, onOpen)] : []),
      element("ol", { class: "steps" }, ...steps),
    ];
  }

  uses(tokenizer, id, onOpen) {
    const found = tokenizer.merges.filter(([left, right]) => left === id || right === id).map((merge) => merge[2]);
    const made = [...new Set(found)];
    if (made.length === 0) return [];
    const more = made.length > LIST_MAX ? ` and ${number(made.length - LIST_MAX)} more` : "";
    const chips = made.slice(0, LIST_MAX).flatMap((other) => [tokenButton(tokenizer, other, onOpen), " "]);
    return [element("h3", {}, "Tokens merged from it"), element("p", { class: "chips" }, ...chips, more)];
  }
}
