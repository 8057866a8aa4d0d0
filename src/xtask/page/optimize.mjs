// Optimizes WebAssembly files in place for a small download: `node optimize.mjs BINARYEN FILE…`.
//
// All files in one process, on as many threads as there are cores: `wasm-opt`, which is the same code in JavaScript, takes
// a second to start, and the page has nearly two hundred chunks.

import { readFileSync, writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { pathToFileURL } from "node:url";
import { Worker, isMainThread, workerData } from "node:worker_threads";

/** Optimizes files until none is left. `next` is the index that all threads share. */
async function work({ library, files, next }) {
  const { default: binaryen } = await import(pathToFileURL(library).href);
  binaryen.setOptimizeLevel(2);
  binaryen.setShrinkLevel(1);
  binaryen.setGenerateStackIR(true);
  binaryen.setOptimizeStackIR(true);
  // Inlined code compresses worse.
  binaryen.setAlwaysInlineMaxSize(0);
  binaryen.setOneCallerInlineMaxSize(0);
  binaryen.setFlexibleInlineMaxSize(0);
  // The page's memory starts out as zeros and has nothing at its lowest addresses.
  binaryen.setLowMemoryUnused(true);
  binaryen.setZeroFilledMemory(true);
  const { Features } = binaryen;
  const features =
    Features.MutableGlobals |
    Features.NontrappingFPToInt |
    Features.SignExt |
    Features.BulkMemory |
    Features.BulkMemoryOpt |
    Features.ReferenceTypes |
    Features.CallIndirectOverlong |
    Features.Multivalue;
  for (let index = Atomics.add(next, 0, 1); index < files.length; index = Atomics.add(next, 0, 1)) {
    const module = binaryen.readBinary(readFileSync(files[index]));
    module.setFeatures(features);
    module.optimize();
    module.runPasses(["strip-producers", "strip-target-features"]);
    writeFileSync(files[index], module.emitBinary());
    module.dispose();
  }
}

if (isMainThread) {
  const [library, ...files] = process.argv.slice(2);
  const next = new Int32Array(new SharedArrayBuffer(4));
  const threads = Math.min(availableParallelism(), files.length);
  for (let thread = 0; thread < threads; thread += 1) {
    // An error of a thread ends the process, with the error's text and a failure. What a thread prints are warnings about
    // each file's names, which are read and not kept: a thread whose output nobody reads never ends once a few thousand
    // warnings wait.
    const worker = new Worker(new URL(import.meta.url), { workerData: { library, files, next }, stderr: true });
    worker.stderr.resume();
  }
} else {
  await work(workerData);
}
