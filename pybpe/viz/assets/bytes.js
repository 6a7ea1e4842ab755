// Bytes, numbers and text.
//
// "Byte strings" hold bytes: strings of characters U+0000 to U+00FF, one per byte, which are good keys for a Map.
// Text represents invalid bytes as Python's "surrogateescape" does: each byte that is not part of valid UTF-8 is one
// lone surrogate, U+DC80 to U+DCFF. So any bytes can be turned into text, and the text back into the same bytes.

/** Reads numbers and bytes that Python packed (pybpe/viz). */
class Packed {
  constructor(base64) {
    this.bytes = atob(base64);
    this.at = 0;
  }

  get done() {
    return this.at >= this.bytes.length;
  }

  /** Returns an unsigned number: seven bits per byte, lowest bits first; the top bit says that more follow (LEB128). */
  number() {
    let value = 0;
    for (let scale = 1; ; scale *= 128) {
      const byte = this.bytes.charCodeAt(this.at++);
      value += (byte & 127) * scale;
      if (byte < 128) return value;
    }
  }

  /** Returns a signed number: 0, -1, 1, -2, 2, ... are packed as 0, 1, 2, 3, 4, ... */
  signed() {
    const value = this.number();
    return value % 2 ? -(value + 1) / 2 : value / 2;
  }

  take(length) {
    this.at += length;
    return this.bytes.slice(this.at - length, this.at);
  }
}

/** Returns the length of the well-formed UTF-8 sequence at an index (Unicode, table 3-7); 0 if there is none. */
function sequenceLength(bytes, at) {
  const lead = bytes.charCodeAt(at);
  const second = bytes.charCodeAt(at + 1);
  const continues = (i) => (bytes.charCodeAt(at + i) & 0xc0) === 0x80;
  if (lead < 0x80) return 1;
  if (lead < 0xc2 || lead > 0xf4 || !continues(1)) return 0;
  if (lead < 0xe0) return 2;
  if (!continues(2)) return 0;
  if (lead < 0xf0) {
    const overlong = lead === 0xe0 && second < 0xa0;
    const surrogate = lead === 0xed && second > 0x9f;
    return overlong || surrogate ? 0 : 3;
  }
  const overlong = lead === 0xf0 && second < 0x90;
  const tooHigh = lead === 0xf4 && second > 0x8f;
  return overlong || tooHigh || !continues(3) ? 0 : 4;
}

/** Returns the text of bytes. */
function decodeUtf8(bytes) {
  const parts = [];
  for (let at = 0; at < bytes.length; ) {
    const length = sequenceLength(bytes, at);
    const byte = (i) => bytes.charCodeAt(at + i);
    if (length === 0) parts.push(String.fromCharCode(0xdc00 + byte(0)));
    else if (length === 1) parts.push(bytes[at]);
    else {
      let point = byte(0) & (0xff >> (length + 1));
      for (let i = 1; i < length; i++) point = (point << 6) | (byte(i) & 0x3f);
      parts.push(String.fromCodePoint(point));
    }
    at += length || 1;
  }
  return parts.join("");
}

/** Returns the bytes of a text. */
function encodeUtf8(text) {
  const low = (point, shift) => String.fromCharCode(0x80 | ((point >> shift) & 0x3f));
  let bytes = "";
  for (const character of text) {
    const point = character.codePointAt(0);
    if (point < 0x80) bytes += character;
    else if (point >= 0xdc80 && point <= 0xdcff) bytes += String.fromCharCode(point - 0xdc00);
    else if (point < 0x800) bytes += String.fromCharCode(0xc0 | (point >> 6)) + low(point, 0);
    else if (point < 0x10000) bytes += String.fromCharCode(0xe0 | (point >> 12)) + low(point, 6) + low(point, 0);
    else bytes += String.fromCharCode(0xf0 | (point >> 18)) + low(point, 12) + low(point, 6) + low(point, 0);
  }
  return bytes;
}

/** Returns typed text as text in the sense above: a lone surrogate becomes U+FFFD, as in pybpe's encode. */
const wellFormed = (typed) => typed.replace(/\p{Surrogate}/gu, "\ufffd");

/** Returns bytes in hexadecimal, such as "e4 b8 ad". */
const hex = (bytes) => Array.from(bytes, (byte) => byte.charCodeAt(0).toString(16).padStart(2, "0")).join(" ");
