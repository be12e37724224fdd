// Makes the page open without a network, and checks whether its host has a newer version.

/**
 * @param {string} version of the files that this page came with
 * @param {(message: string) => void} tell shows a line to the reader
 * @returns {Promise<string>} whether it works offline
 */
export async function keepOffline(version, tell) {
  const workers = navigator.serviceWorker;
  if (!workers) return "not here; browsers store pages only from https or this machine";
  try {
    await workers.register(`sw.js?${version}`);
    await workers.ready;
    if (!workers.controller) await new Promise((resolve) => workers.addEventListener("controllerchange", resolve, { once: true }));
  } catch (error) {
    return `not ready (${error.message})`;
  }
  lookForNewer(version, tell);
  return "✓ ready";
}

/** Fetches a newer version in the background, and reports when it is ready. */
async function lookForNewer(version, tell) {
  if (!navigator.onLine) return;
  const response = await fetch("files.json?fresh", { cache: "no-store" }).catch(() => undefined);
  const newest = response?.ok ? await response.json() : undefined;
  if (!newest || newest.version === version) return;
  navigator.serviceWorker.addEventListener(
    "controllerchange",
    () => tell("A newer version of this page is ready; reload to update. Texts you have not chosen to keep will be lost."),
    { once: true },
  );
  await navigator.serviceWorker.register(`sw.js?${newest.version}`);
}
