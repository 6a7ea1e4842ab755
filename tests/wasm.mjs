// Runs the C library, compiled to WebAssembly, in node: each tokenizer.json and tokenizer.bin of
// tests/vectors/versions must give the ids that are recorded there, and llmc_walk the batches of llm.c. `make wasm` starts it:
//
//     node tests/wasm.mjs pybpe.wasm llmc_walk.wasm
import assert from "node:assert";
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { resolve } from "node:path";
import { WASI } from "node:wasi";

const VECTORS = resolve("tests", "vectors");
const CUSTOM = ["custom", "superwords"]; // only Python compiles their patterns
const SIZE_OF_ERROR = 512;

async function instantiate(path, args = []) {
  const wasi = new WASI({ version: "preview1", args, preopens: { "/": "/" } });
  const module = await WebAssembly.compile(readFileSync(path));
  return [wasi, await WebAssembly.instantiate(module, wasi.getImportObject())];
}

const [wasi, instance] = await instantiate(process.argv[2]);
wasi.initialize(instance);
const c = instance.exports;

/** Copies bytes into the memory of the library. */
function copied(bytes) {
  const at = c.malloc(bytes.length || 1);
  new Uint8Array(c.memory.buffer).set(bytes, at);
  return at;
}

const number = (at) => new DataView(c.memory.buffer).getUint32(at, true);
const error = c.malloc(SIZE_OF_ERROR);
const out = c.malloc(4); // for a handle or a size

/** Calls a fallible function, and throws its error's message. */
function call(name, ...args) {
  if (c[name](...args, error) !== 0) {
    const message = Buffer.from(c.memory.buffer, error + 16, SIZE_OF_ERROR - 16);
    throw new Error(message.toString("utf8", 0, message.indexOf(0)));
  }
}

/** Calls one that makes a handle, and returns the handle. */
function made(name, ...args) {
  call(name, out, ...args);
  return number(out);
}

/** Returns a function from bytes to ids. */
function loaded(path) {
  const file = readFileSync(path);
  const vocab = made("pybpe_vocab_load_mem", copied(file), file.length, 0);
  const encoder = made("pybpe_encoder_new", vocab, 0, 0, 0);
  const cache = made("pybpe_cache_new", encoder, 0);
  const specials = c.pybpe_encoder_specials(encoder);
  return (text) => {
    const room = 12 * text.length;
    const ids = c.malloc(4 * room + 4);
    call("pybpe_encode", encoder, cache, specials, copied(text), text.length, ids, 4, room, out);
    return [...new Uint32Array(c.memory.buffer, ids, number(out))];
  };
}

let compared = 0;
for (const version of readdirSync(resolve(VECTORS, "versions"))) {
  const folder = resolve(VECTORS, "versions", version);
  if (!existsSync(resolve(folder, "expected.json"))) continue;
  const expected = JSON.parse(readFileSync(resolve(folder, "expected.json")));
  for (const [name, ids] of Object.entries(expected.ids)) {
    for (const path of ["json", "bin"].map((ending) => resolve(folder, `${name}.${ending}`))) {
      if (CUSTOM.includes(name)) {
        assert.throws(() => loaded(path)(Buffer.from("a")), /in none of the models that C reads|has a custom pattern/);
        continue;
      }
      const encode = loaded(path);
      expected.probes.forEach((probe, i) => {
        assert.deepStrictEqual(encode(Buffer.from(probe, "base64")), ids[i], `${path}, probe ${i}`);
        compared++;
      });
    }
  }
}
assert.ok(compared > 0);
console.log(`${compared} texts have the recorded ids`);

const [host, program] = await instantiate(process.argv[3], ["llmc_walk", resolve(VECTORS, "loader_llmc.json")]);
process.exitCode = host.start(program);
