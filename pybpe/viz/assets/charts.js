// Charts, drawn as SVG. A table below each chart gives its numbers.

const CHART = { width: 400, height: 260, left: 50, right: 16, top: 12, bottom: 46 };

const identity = (value) => value;

/** Returns round numbers from 0 to slightly more than `most`. */
function linearTicks(most) {
  const rough = most / 5;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((candidate) => candidate >= rough);
  return Array.from({ length: Math.ceil(most / step) + 1 }, (_, i) => i * step);
}

/** Returns the powers of `base` that enclose a range. */
function powerTicks(least, most, base) {
  const ticks = [];
  const first = Math.floor(Math.log(least) / Math.log(base) + 1e-9);
  for (let power = first; ticks.length === 0 || ticks.at(-1) < most; power++) ticks.push(base ** power);
  return ticks;
}

const shortNumber = (value) =>
  value >= 1e6 ? `${+(value / 1e6).toFixed(1)}M` : value >= 1e3 ? `${+(value / 1e3).toFixed(1)}k` : String(+value.toFixed(3));

/** Does the same for powers of two: 1k is 1024. */
const binaryNumber = (value) => (value >= 2 ** 20 ? `${value / 2 ** 20}M` : value >= 1024 ? `${value / 1024}k` : String(value));

/** Returns a function from values to positions on an axis. */
function scale([least, most], [start, end], log) {
  const bend = log ? Math.log : identity;
  return (value) => start + ((bend(value) - bend(least)) / (bend(most) - bend(least) || 1)) * (end - start);
}

/** Draws axes, grid and labels. Returns the drawing, and the functions from values to positions. */
function chartFrame({ label, xLabel, yLabel, xTicks, yTicks, xRange, xLog, yLog, xNumber = shortNumber }) {
  const { width, height, left, right, top, bottom } = CHART;
  const x = scale(xRange ?? [xTicks[0], xTicks.at(-1)], [left, width - right], xLog);
  const y = scale([yTicks[0], yTicks.at(-1)], [height - bottom, top], yLog);
  const drawing = element("svg:svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label });
  const words = (text, properties) => element("svg:text", properties, text);
  for (const tick of yTicks) {
    const at = y(tick);
    drawing.append(element("svg:line", { class: "grid", x1: left, x2: width - right, y1: at, y2: at }));
    drawing.append(words(shortNumber(tick), { x: left - 8, y: at + 4, "text-anchor": "end" }));
  }
  for (const tick of xTicks) {
    drawing.append(words(xNumber(tick), { x: x(tick), y: height - bottom + 18, "text-anchor": "middle" }));
  }
  const middle = (top + height - bottom) / 2;
  drawing.append(
    words(xLabel, { class: "axis", x: (left + width - right) / 2, y: height - 6, "text-anchor": "middle" }),
    words(yLabel, { class: "axis", transform: `translate(13 ${middle}) rotate(-90)`, "text-anchor": "middle" }),
  );
  return { drawing, x, y };
}

function drawLine(frame, points, series, withDots, tell) {
  const places = points.map(([a, b]) => [frame.x(a), frame.y(b)]);
  const d = places.map(([a, b], i) => `${i ? "L" : "M"}${a.toFixed(1)},${b.toFixed(1)}`).join("");
  frame.drawing.append(element("svg:path", { class: `line s${series}`, d }));
  places.forEach(([cx, cy], i) => {
    if (!withDots) return;
    const dot = element("svg:circle", { class: `dot s${series}`, cx, cy, r: 4 });
    dot.append(element("svg:title", {}, tell(points[i])));
    frame.drawing.append(dot);
  });
}

/** Returns a chart with its title, legend and table. Each row is [label, value of each series...]. */
function figure(title, note, drawing, names, columns, rows) {
  const legend = names.map((name, i) => element("li", {}, element("span", { class: `swatch s${i}` }), name));
  const cells = (row, tag) => element("tr", {}, ...row.map((cell) => element(tag, tag === "th" ? { scope: "col" } : {}, cell)));
  const table = element("table", {}, element("thead", {}, cells(columns, "th")));
  table.append(element("tbody", {}, ...rows.map((row) => cells(row, "td"))));
  return element(
    "figure",
    {},
    element("figcaption", {}, element("h3", {}, title), element("p", { class: "quiet" }, note)),
    ...(names.length > 1 ? [element("ul", { class: "legend" }, ...legend)] : []),
    drawing,
    element("details", {}, element("summary", {}, "The numbers"), element("div", { class: "scroll" }, table)),
  );
}

const LONGEST_BAR = 16; // all tokens of at least this many bytes share a bar

function lengthChart(tokenizers) {
  const shares = tokenizers.map((tokenizer) => {
    const counts = new Array(LONGEST_BAR + 1).fill(0);
    for (const bytes of tokenizer.tokens) if (bytes) counts[Math.min(bytes.length, LONGEST_BAR)]++;
    const all = counts.reduce((a, b) => a + b);
    return counts.map((count) => (100 * count) / all);
  });
  const lengths = Array.from({ length: LONGEST_BAR }, (_, i) => i + 1);
  const name = (length) => (length === LONGEST_BAR ? `${length}+` : String(length));
  const frame = chartFrame({
    label: "Share of the vocabulary by token length in bytes",
    xLabel: `bytes (${LONGEST_BAR}: ${LONGEST_BAR} or more)`,
    yLabel: "% of the vocabulary",
    xTicks: lengths,
    xRange: [0.4, LONGEST_BAR + 0.6],
    yTicks: linearTicks(Math.max(...shares.flat())),
  });
  const slot = (frame.x(2) - frame.x(1)) * 0.8;
  shares.forEach((share, series) => {
    const width = slot / shares.length;
    for (const length of lengths) {
      const top = frame.y(share[length]);
      const x = frame.x(length) - slot / 2 + series * width;
      const bar = { class: `column s${series}`, x, y: top, width: Math.max(1, width - 1), height: frame.y(0) - top, rx: 1.5 };
      const title = element("svg:title", {}, `${name(length)} bytes: ${decimals(share[length])}%`);
      frame.drawing.append(element("svg:rect", bar, title));
    }
  });
  const names = tokenizers.map((tokenizer) => tokenizer.name);
  const rows = lengths.map((length) => [name(length), ...shares.map((share) => `${decimals(share[length])}%`)]);
  const note = "The share of the vocabulary's tokens that have each length.";
  return figure("Token length", note, frame.drawing, names, ["Bytes", ...names], rows);
}

function frequencyChart(entries) {
  const sorted = entries.map(({ counts }) => [...counts.values()].sort((a, b) => b - a));
  const most = Math.max(...sorted.map((counts) => counts[0]));
  const longest = Math.max(...sorted.map((counts) => counts.length));
  const frame = chartFrame({
    label: "Number of occurrences of each token in the text, by rank; both axes are logarithmic",
    xLabel: "rank of the token, by frequency",
    yLabel: "occurrences in the text",
    xTicks: powerTicks(1, Math.max(longest, 10), 10),
    yTicks: powerTicks(1, Math.max(most, 10), 10),
    xLog: true,
    yLog: true,
  });
  sorted.forEach((counts, series) => {
    drawLine(frame, counts.map((count, i) => [i + 1, count]), series, false);
  });
  const names = entries.map(({ tokenizer }) => tokenizer.name);
  const ranks = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000].filter((rank) => rank <= longest);
  const rows = ranks.map((rank) => [number(rank), ...sorted.map((counts) => number(counts[rank - 1] ?? 0))]);
  const note = "In natural text, the frequency falls in nearly a straight line (Zipf's law).";
  return figure("Frequency by rank", note, frame.drawing, names, ["Rank", ...names], rows);
}

function compressionChart(tokenizers, bytes) {
  const curves = tokenizers.map(({ data }) => data.curve.map(([size, tokens]) => [size, bytes / tokens]));
  const points = curves.flat();
  const sizes = points.map(([size]) => size);
  const ticks = powerTicks(Math.min(...sizes), Math.max(...sizes), 2);
  const frame = chartFrame({
    label: "Bytes of the text per token, by vocabulary size",
    xLabel: "vocabulary size",
    yLabel: "bytes per token",
    xTicks: ticks.length > 7 ? ticks.filter((_, i) => i % 2 === 0) : ticks,
    xRange: [ticks[0], ticks.at(-1)],
    yTicks: linearTicks(Math.max(...points.map(([, ratio]) => ratio))),
    xLog: true,
    xNumber: binaryNumber,
  });
  const tell = ([size, ratio]) => `${number(size)} tokens: ${decimals(ratio)} bytes per token`;
  curves.forEach((curve, series) => drawLine(frame, curve, series, true, tell));
  const names = tokenizers.map((tokenizer) => tokenizer.name);
  const all = [...new Set(sizes)].sort((a, b) => a - b);
  const cell = (curve, size) => curve.find((point) => point[0] === size)?.[1];
  const rows = all.map((size) => [
    number(size),
    ...curves.map((curve) => (cell(curve, size) === undefined ? "" : decimals(cell(curve, size)))),
  ]);
  const note = "The compression of this text if each vocabulary had only its first tokens.";
  return figure("Compression by vocabulary size", note, frame.drawing, names, ["Size", ...names], rows);
}
