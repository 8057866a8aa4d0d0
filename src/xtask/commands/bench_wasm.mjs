// Times `main` of a WebAssembly module, whose path is the last argument: once cold, then warm.
import { readFile } from "node:fs/promises";

const WARM = 30;

const { instance } = await WebAssembly.instantiate(await readFile(process.argv.at(-1)), {});
const estimate = () => {
  const start = performance.now();
  if (instance.exports.main(0, 0) !== 0) throw new Error("the estimate failed");
  return performance.now() - start;
};

const first = estimate();
const times = Array.from({ length: WARM }, estimate).sort((a, b) => a - b);
const ms = (t) => `${t.toFixed(1)} ms`;
console.log(`first ${ms(first)}, then of ${WARM}: fastest ${ms(times[0])}, median ${ms(times[WARM / 2])}`);
