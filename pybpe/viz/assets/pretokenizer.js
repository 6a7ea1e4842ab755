// Splits text into words with the tokenizer's pattern.
//
// The built-in patterns depend only on the class of each character. A browser's regular expressions use the browser's
// version of Unicode, but the page contains the classes that the tokenizer uses. So the patterns match the shadow of a
// text, in which one well-known character represents its whole class. ASCII represents itself, and so does the long s,
// which matches an s if case is ignored. A custom pattern may depend on anything, so it matches the text itself.

const STAND_INS = new Map([
  [0, "§"], // other
  [1, "À"], // Lu, Lt
  [2, "à"], // Ll
  [4, "א"], // Lm, Lo
  [8, "\u0300"], // M
  [16, "²"], // N
  [32, "\u00a0"], // white space
]);
const LONG_S = 0x17f;

/** Returns the character that represents each code point, from runs of (length, class). */
function readShadows(base64) {
  const shadows = new Uint16Array(0x110000);
  const runs = new Packed(base64);
  for (let at = 0; !runs.done; ) {
    const length = runs.number();
    shadows.fill(STAND_INS.get(runs.number()).charCodeAt(0), at, at + length);
    at += length;
  }
  for (let point = 0; point < 0x80; point++) shadows[point] = point;
  shadows[LONG_S] = LONG_S;
  return shadows;
}

/** Returns the matches of a regular expression and the text between them. `slice(start, end)` is a part of the text. */
function splitByPattern(pattern, matched, slice) {
  const words = [];
  let done = 0;
  for (const match of matched.matchAll(pattern)) {
    const end = match.index + match[0].length;
    if (match.index > done) words.push(slice(done, match.index));
    words.push(slice(match.index, end));
    done = end;
  }
  if (done < matched.length) words.push(slice(done, matched.length));
  return words;
}

/** Returns a function from text to words. `shadows` is null for a custom pattern. */
function makePretokenizer(source, shadows) {
  const pattern = new RegExp(source, "gu");
  if (shadows === null) return (text) => splitByPattern(pattern, text, (start, end) => text.slice(start, end));
  return (text) => {
    const characters = Array.from(text);
    const shadow = characters.map((c) => String.fromCharCode(shadows[c.codePointAt(0)])).join("");
    return splitByPattern(pattern, shadow, (start, end) => characters.slice(start, end).join(""));
  };
}
