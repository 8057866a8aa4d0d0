// Starts the page's WebAssembly in a worker. The page's first message has the address of its glue, which loads while the
// page compiles the module that the second one has. What else the page says before the program listens is kept for it.
const early = [];
let glue;
addEventListener("message", listen);

function listen({ data }) {
  if (data.js) {
    globalThis.vramscope = { chunks: data.chunks };
    glue = import(data.js);
    // Its failure is told by what waits for it below.
    glue.catch(() => {});
    postMessage("listening");
  } else if (data.module) {
    start(data.module);
  } else {
    early.push(data);
  }
}

async function start(module) {
  try {
    const program = await glue;
    await program.default({ module_or_path: module });
  } catch (error) {
    // Out of this promise, so that the page hears of it.
    setTimeout(() => { throw error; });
    return;
  }
  removeEventListener("message", listen);
  for (const data of early) dispatchEvent(new MessageEvent("message", { data }));
}
