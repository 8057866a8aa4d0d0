// Starts the page's WebAssembly in a worker: the page's first message has the compiled module and
// the address of its glue. What the page says before the program listens is kept for it.
addEventListener("message", start, { once: true });

async function start({ data: { js, module } }) {
  const early = [];
  const keep = ({ data }) => early.push(data);
  addEventListener("message", keep);
  try {
    const program = await import(js);
    await program.default({ module_or_path: module });
  } catch (error) {
    // Out of this promise, so that the page hears of it.
    setTimeout(() => { throw error; });
    return;
  }
  removeEventListener("message", keep);
  for (const data of early) dispatchEvent(new MessageEvent("message", { data }));
}
