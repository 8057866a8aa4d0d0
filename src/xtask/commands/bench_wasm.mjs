// Times `main` of WebAssembly modules, whose paths are the arguments: once cold, then warm. Beside the
// clock stands the processor's own time, which a busy machine does not stretch.
import { readFile } from "node:fs/promises";
import { basename } from "node:path";

const WARM = 30;

const cpu = (since) => {
  const { user, system } = process.cpuUsage(since);
  return (user + system) / 1000;
};

const measure = (run) => {
  const [start, used] = [performance.now(), process.cpuUsage()];
  if (run() !== 0) throw new Error("the estimate failed");
  return { clock: performance.now() - start, cpu: cpu(used) };
};

const ms = (times) => {
  const sorted = [...times].sort((a, b) => a - b);
  const show = (t) => `${t.toFixed(1)} ms`;
  return `fastest ${show(sorted[0])}, median ${show(sorted[sorted.length >> 1])}`;
};

for (const path of process.argv.slice(2)) {
  const { instance } = await WebAssembly.instantiate(await readFile(path), {});
  const estimate = () => measure(() => instance.exports.main(0, 0));
  const first = estimate();
  const warm = Array.from({ length: WARM }, estimate);
  const [clock, used] = [warm.map((t) => t.clock), warm.map((t) => t.cpu)];
  console.log(`${basename(path, ".wasm")}: first ${first.clock.toFixed(1)} ms; then of ${WARM}: ${ms(clock)}; of the processor: ${ms(used)}`);
}
