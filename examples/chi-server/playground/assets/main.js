import { copyButtons } from "./code.js";
import { $, say } from "./dom.js";
import { limits } from "./limits.js";
import { live } from "./live.js";
import { stories } from "./stories.js";

copyButtons();
const broken = (error) => say($("target-says"), `The page cannot begin: ${error.message}.`);
const play = await live().catch(broken);
play?.().catch(broken);
limits(); // the rest of the page waits until the buttons work
stories();
