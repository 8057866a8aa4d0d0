// Before the page's own scripts: notes when the first result is painted, in ms since navigation began.
new MutationObserver((_, observer) => {
  if (!document.querySelector("[data-testid=peak-allocated][data-value]")) return;
  observer.disconnect();
  requestAnimationFrame(() => {
    const { port1, port2 } = new MessageChannel();
    // A frame's tasks run once it is painted.
    port1.onmessage = () => { globalThis.usableMs = performance.now(); };
    port2.postMessage(null);
  });
}).observe(document, { subtree: true, childList: true, attributes: true, attributeFilter: ["data-value"] });
