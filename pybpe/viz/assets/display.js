// Shows tokens: every character is visible, and no text is interpreted as HTML.

/** Returns an element. Properties that start with "on" are listeners. Strings among the children become text, not HTML. */
function element(tag, properties = {}, ...children) {
  const made = tag.startsWith("svg:")
    ? document.createElementNS("http://www.w3.org/2000/svg", tag.slice(4))
    : document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value !== null) made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

const number = (value) => value.toLocaleString("en-US");
const decimals = (value, digits = 2) => value.toFixed(digits);
const plural = (count, noun) => `${number(count)} ${noun}${count === 1 ? "" : "s"}`;

const HIDDEN = /[\p{C}\p{Zl}\p{Zp}]/u; // includes unassigned characters, and lone surrogates, which are bytes that are not UTF-8
const SPACE = /\p{White_Space}/u;
const MARK_FIRST = /^\p{M}/u;

const CONTROLS = (
  "NUL SOH STX ETX EOT ENQ ACK BEL BS HT LF VT FF CR SO SI DLE DC1 DC2 DC3 DC4 NAK SYN ETB CAN EM SUB ESC FS GS RS US"
).split(" ");

/** Returns the label that replaces an invisible character; null for a visible one. */
function standIn(character) {
  const point = character.codePointAt(0);
  if (point >= 0xdc80 && point <= 0xdcff) return (point - 0xdc00).toString(16).toUpperCase();
  if (point < 0x20) return CONTROLS[point];
  if (point === 0x7f) return "DEL";
  if (point === 0xa0) return "NBSP";
  if (point > 0x20 && (HIDDEN.test(character) || SPACE.test(character))) {
    return `U+${point.toString(16).toUpperCase().padStart(4, "0")}`; // a byte has two digits and no U+
  }
  return null;
}

/**
 * Returns the nodes that show a token. Spaces, tabs and newlines stay in the text, so that users can copy it, and the
 * style sheet draws their marks; other invisible characters get a label.
 */
function tokenNodes(bytes) {
  const nodes = [];
  let plain = "";
  const flush = () => {
    if (plain) nodes.push(document.createTextNode(MARK_FIRST.test(plain) ? "◌" + plain : plain));
    plain = "";
  };
  for (const character of decodeUtf8(bytes)) {
    const kind = { " ": "space", "\t": "tab", "\n": "newline" }[character];
    const label = kind ? null : standIn(character);
    if (!kind && label === null) {
      plain += character;
      continue;
    }
    flush();
    nodes.push(kind ? element("i", { class: kind }, character) : element("i", { class: "label" }, label));
  }
  flush();
  return nodes;
}

/** Returns a token as plain text, for labels and drawings. */
function tokenText(bytes) {
  const marks = { " ": "·", "\t": "→", "\n": "↵" };
  let text = "";
  for (const character of decodeUtf8(bytes)) {
    const label = marks[character] ?? standIn(character);
    text += label === null ? character : character in marks ? label : `⟨${label}⟩`;
  }
  return MARK_FIRST.test(text) ? "◌" + text : text;
}
