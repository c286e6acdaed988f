import { copyButtons } from "./code.js";
import { live } from "./live.js";

copyButtons();
const page = live();
performance.mark("usable");
start();

/**
 * The rest of the page waits until the buttons work, and the page's own burst is over. The document preloads its modules,
 * because streams of other tabs may hold all connections by now.
 */
async function start() {
  await page.play();
  const [{ stories }, { limits }] = await Promise.all([import("./stories.js"), import("./limits.js")]);
  stories();
  limits();
}
