// Keeps the page on this machine, so that it opens without a network, and installs it as an app.
//
// The page and this script talk by events of the window: here `vramscope:update` and
// `vramscope:install` say what is possible, and the page answers with `vramscope:do-update` and
// `vramscope:do-install`. What is possible also stands in the root element's data, for a page that
// begins to listen later.
const root = document.documentElement;
/** So long after the page has loaded, what it is made of begins to be kept. */
const FIRST_LOOK_MS = 2000;
const offer = (what, possible) => {
  root.toggleAttribute(`data-${what}`, possible);
  window.dispatchEvent(new Event(`vramscope:${what}`));
};

/** Tells the page of a version that waits, and gives way to it when the page asks. */
const announce = (worker) => {
  offer("update", true);
  window.addEventListener("vramscope:do-update", () => worker.postMessage("take over"), { once: true });
};

/** A version that is installed while another is in charge waits until it is asked. */
const watch = (worker) =>
  worker?.addEventListener("statechange", () => {
    if (worker.state === "installed" && navigator.serviceWorker.controller) announce(worker);
  });

const keep = async () => {
  const { serviceWorker } = navigator;
  const hadVersion = Boolean(serviceWorker.controller);
  serviceWorker.addEventListener("controllerchange", () => hadVersion && location.reload());
  const registration = await serviceWorker.register("service-worker.js", { updateViaCache: "none" });
  if (registration.waiting && serviceWorker.controller) announce(registration.waiting);
  watch(registration.installing);
  registration.addEventListener("updatefound", () => watch(registration.installing));
  // A page that stays open for days asks when it is looked at again.
  document.addEventListener("visibilitychange", () => {
    if (document.visibilityState === "visible") registration.update().catch(() => {});
  });
};

window.addEventListener("beforeinstallprompt", (prompt) => {
  prompt.preventDefault();
  offer("install", true);
  window.addEventListener(
    "vramscope:do-install",
    () => {
      offer("install", false);
      prompt.prompt();
    },
    { once: true },
  );
});

// In a frame of another page, and where service workers are forbidden, the page works as any other.
if (window === window.parent && navigator.serviceWorker) {
  const start = () => keep().catch((reason) => console.info(`The page is not kept for use offline: ${reason}`));
  // The engine's first answer comes first: a hundred requests for what is kept would hold it up.
  const later = () => setTimeout(start, FIRST_LOOK_MS);
  if (document.readyState === "complete") later();
  else window.addEventListener("load", later);
}
