// Reads files for the page of diagnoses: a worker with a program of its own, which is loaded when it is first
// needed. The page ends the worker when it is told to stop.
onmessage = async ({ data: { js, wasm, files } }) => {
  try {
    const program = await import(js);
    await program.default({ module_or_path: wasm });
    for (const [done, file] of files.entries()) {
      postMessage({ done, of: files.length });
      program.add(file.name, await unpacked(file));
    }
    postMessage({ answer: program.answer() });
  } catch (error) {
    postMessage({ fault: String(error) });
  }
};

/** The bytes of a file, of gzip unpacked. */
async function unpacked(file) {
  const [first, second] = new Uint8Array(await file.slice(0, 2).arrayBuffer());
  if (first !== 0x1f || second !== 0x8b) return new Uint8Array(await file.arrayBuffer());
  const stream = file.stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}
