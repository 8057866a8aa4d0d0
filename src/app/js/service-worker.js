// Answers the page's requests from what is kept on this machine. `cargo xtask build` writes two
// constants above: VERSION, which changes with the content of any file, and FILES, all that the page
// is made of.

// Other pages of this host, and another VRAMscope in another folder, have caches of their own.
const PREFIX = `vramscope ${registration.scope} `;
const CACHE = PREFIX + VERSION;
const PAGE = registration.scope;

const keep = async () => {
  const cache = await caches.open(CACHE);
  // Asked anew of the host: a file of an older version must not slip in from the browser's own cache.
  await cache.addAll(FILES.map((name) => new Request(name, { cache: "no-cache" })));
};

const forgetOlder = async () => {
  const names = await caches.keys();
  await Promise.all(names.filter((name) => name.startsWith(PREFIX) && name !== CACHE).map((name) => caches.delete(name)));
  await clients.claim();
};

/** The page's own address, with or without its file name. */
const isPage = ({ mode, url }) => mode === "navigate" && [PAGE, `${PAGE}index.html`].includes(url.split(/[?#]/)[0]);

const answer = async (request) => {
  const cache = await caches.open(CACHE);
  const kept = await cache.match(isPage(request) ? PAGE : request);
  return kept ?? fetch(request);
};

addEventListener("install", (event) => event.waitUntil(keep()));
addEventListener("activate", (event) => event.waitUntil(forgetOlder()));
addEventListener("fetch", (event) => {
  // Other hosts, such as a model hub, are the browser's own matter.
  if (event.request.method === "GET" && event.request.url.startsWith(registration.scope)) {
    event.respondWith(answer(event.request));
  }
});
addEventListener("message", (event) => {
  if (event.data === "take over") skipWaiting();
});
