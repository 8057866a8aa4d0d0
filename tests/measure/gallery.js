// In the page, with the gallery on screen: opens each recording of a list and goes back, and times each from the moment
// at which its file is there. Argument: names. Answer: a list of [name, figures painted, everything painted] in ms.
const [names, done] = arguments;

// What the last recording set off is over by then.
const PAUSE_MS = 300;
const PATIENCE_MS = 30_000;
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

if (!globalThis.isWatched) {
  globalThis.isWatched = true;
  const read = Response.prototype.arrayBuffer;
  Response.prototype.arrayBuffer = async function () {
    const bytes = await read.call(this);
    if (this.url.endsWith(".vram")) globalThis.fileMs = performance.now();
    return bytes;
  };
}

const painted = () =>
  new Promise((resolve) => {
    requestAnimationFrame(() => {
      const { port1, port2 } = new MessageChannel();
      // A frame's tasks run once it is painted.
      port1.onmessage = () => resolve(performance.now());
      port2.postMessage(null);
    });
  });

const appears = (selector) =>
  new Promise((resolve, reject) => {
    if (document.querySelector(selector)) return resolve();
    const late = setTimeout(() => reject(new Error(`no ${selector} within ${PATIENCE_MS} ms`)), PATIENCE_MS);
    const observer = new MutationObserver(() => {
      if (!document.querySelector(selector)) return;
      observer.disconnect();
      clearTimeout(late);
      resolve();
    });
    observer.observe(document, { subtree: true, childList: true, attributes: true, attributeFilter: ["data-value"] });
  });

const all = async () => {
  const times = [];
  for (const name of names) {
    const link = `[data-testid=gallery-item][data-name="${name}"]`;
    await appears(link);
    await pause(PAUSE_MS);
    document.querySelector(link).click();
    await appears("[data-testid=peak-allocated][data-value]").catch((error) => Promise.reject(`${name}: ${error}`));
    const figures = (await painted()) - globalThis.fileMs;
    await appears("[data-testid=breakdown-row]");
    const whole = (await painted()) - globalThis.fileMs;
    times.push([name, figures, whole]);
    document.querySelector("[data-testid=gallery-back]").click();
  }
  return times;
};

all().then(done, (error) => done(String(error)));
