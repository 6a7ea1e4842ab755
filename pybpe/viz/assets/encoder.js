// A tokenizer: it is unpacked from the page's data, and encodes and decodes text.

/** A priority queue of numbers, smallest first (a binary heap). */
class Heap {
  constructor() {
    this.items = [];
  }

  push(item) {
    const items = this.items;
    let at = items.length;
    while (at > 0 && items[(at - 1) >> 1] > item) {
      items[at] = items[(at - 1) >> 1];
      at = (at - 1) >> 1;
    }
    items[at] = item;
  }

  pop() {
    const items = this.items;
    const least = items[0];
    const last = items.pop();
    let at = 0;
    while (2 * at + 1 < items.length) {
      let child = 2 * at + 1;
      if (child + 1 < items.length && items[child + 1] < items[child]) child++;
      if (items[child] >= last) break;
      items[at] = items[child];
      at = child;
    }
    if (items.length > 0) items[at] = last;
    return least;
  }
}

const GONE = -1; // marks the place of a token that has become part of the token before it
const RANK_UNIT = 2 ** 32; // rank * RANK_UNIT + place orders pairs by rank, then from left to right

class Tokenizer {
  /**
   * @param data one of the page's `tokenizers`
   * @param shadows the page's Unicode classes: see pretokenizer.js
   */
  constructor(data, shadows) {
    this.name = data.name;
    this.data = data;
    this.specials = new Map(data.specials);
    this.specialIds = new Set(this.specials.values());
    this.unpackVocabulary(data);
    this.ordinaryIds = new Map();
    this.tokens.forEach((bytes, id) => {
      if (bytes && !this.specialIds.has(id)) this.ordinaryIds.set(bytes, id);
    });
    this.whyNotLive = data.pattern.why;
    if (data.pattern.javascript !== null) this.preparePattern(data, shadows);
    this.cache = new Map();
  }

  /** tokens[id] is a byte string; merges[rank] = [left, right, merged]; madeBy maps an id to its first rank. */
  unpackVocabulary(data) {
    this.tokens = new Array(data.size).fill("");
    this.merges = [];
    this.ranks = new Map();
    this.madeBy = new Map();
    const given = new Packed(data.tokens);
    while (!given.done) {
      const id = given.number();
      this.tokens[id] = given.take(given.number());
    }
    const packed = new Packed(data.merges);
    let merged = 0;
    while (!packed.done) {
      const left = packed.number();
      const right = packed.number();
      merged += packed.signed();
      const rank = this.merges.length;
      this.merges.push([left, right, merged]);
      const pair = left * data.size + right;
      if (!this.ranks.has(pair)) this.ranks.set(pair, rank);
      if (!this.madeBy.has(merged)) this.madeBy.set(merged, rank);
      if (!this.tokens[merged]) this.tokens[merged] = this.tokens[left] + this.tokens[right];
    }
  }

  preparePattern(data, shadows) {
    try {
      this.words = makePretokenizer(data.pattern.javascript, data.pattern.custom ? null : shadows);
    } catch (error) {
      this.whyNotLive = `this browser does not support its pattern: ${error.message}`;
      return;
    }
    // If several special tokens match at one place, the longest wins, so it comes first.
    const longestFirst = [...this.specials.keys()].sort((a, b) => b.length - a.length);
    const escaped = longestFirst.map((special) => special.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&"));
    this.specialPattern = escaped.length ? new RegExp(escaped.join("|"), "gu") : null;
  }

  /** Returns the ids of a text (in the sense of bytes.js). */
  encode(text) {
    const normal = this.data.normalizer === null ? text : text.normalize(this.data.normalizer);
    const ids = [];
    let done = 0;
    for (const match of this.specialPattern === null ? [] : normal.matchAll(this.specialPattern)) {
      this.encodeOrdinary(normal.slice(done, match.index), ids);
      ids.push(this.specials.get(match[0]));
      done = match.index + match[0].length;
    }
    this.encodeOrdinary(normal.slice(done), ids);
    return ids;
  }

  encodeOrdinary(text, ids) {
    for (const word of this.words(text)) {
      if (!this.cache.has(word)) this.cache.set(word, this.encodeWord(encodeUtf8(word)));
      for (const id of this.cache.get(word)) ids.push(id);
    }
  }

  /** Starts from the bytes. Merges the pair with the lowest rank (the leftmost of several) until none is left. */
  encodeWord(bytes) {
    if (this.data.whole_words && this.ordinaryIds.has(bytes)) return [this.ordinaryIds.get(bytes)];
    const end = bytes.length;
    const ids = Array.from(bytes, (byte) => this.ordinaryIds.get(byte));
    const next = ids.map((_, i) => i + 1);
    const before = ids.map((_, i) => i - 1);
    const rankAt = (i) => (next[i] < end ? this.ranks.get(ids[i] * this.data.size + ids[next[i]]) : undefined);
    const heap = new Heap();
    const consider = (i) => {
      const rank = rankAt(i);
      if (rank !== undefined) heap.push(rank * RANK_UNIT + i);
    };
    for (let i = 0; i < end; i++) consider(i);
    while (heap.items.length > 0) {
      const least = heap.pop();
      const i = least % RANK_UNIT;
      const rank = Math.floor(least / RANK_UNIT);
      if (ids[i] === GONE || rankAt(i) !== rank) continue; // an earlier merge changed this place
      const right = next[i];
      ids[i] = this.merges[rank][2];
      ids[right] = GONE;
      next[i] = next[right];
      if (next[i] < end) before[next[i]] = i;
      consider(i);
      if (before[i] >= 0) consider(before[i]);
    }
    return ids.filter((id) => id !== GONE);
  }

  /** Returns the bytes of ids. */
  decode(ids) {
    return ids.map((id) => this.tokens[id]).join("");
  }
}
