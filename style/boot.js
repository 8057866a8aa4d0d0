// Starts the page's WebAssembly. A browser that cannot run it gets a message, never a blank page.
const { js, wasm } = document.querySelector("script[data-wasm]").dataset;

try {
  const page = await import(new URL(js, document.baseURI));
  await page.default({ module_or_path: new URL(wasm, document.baseURI) });
} catch (error) {
  const message = document.createElement("p");
  message.className = "boot-error";
  message.setAttribute("role", "alert");
  message.textContent = `VRAMscope could not start: ${error}. It needs a browser with WebAssembly (any of the last three years).`;
  document.body.append(message);
  console.error(error);
}
