// Starts the page's WebAssembly in a worker: one message of the page has the compiled module and the
// address of its glue. What else the page says before the program listens is kept for it.
const early = [];
addEventListener("message", listen);

function listen({ data }) {
  if (data.module) start(data);
  else early.push(data);
}

async function start({ js, module, chunks }) {
  globalThis.vramscope = { chunks };
  try {
    const program = await import(js);
    await program.default({ module_or_path: module });
  } catch (error) {
    // Out of this promise, so that the page hears of it.
    setTimeout(() => { throw error; });
    return;
  }
  removeEventListener("message", listen);
  for (const data of early) dispatchEvent(new MessageEvent("message", { data }));
}
