import { copyButtons } from "./code.js";
import { $, say } from "./dom.js";
import { limits } from "./limits.js";
import { live } from "./live.js";
import { stories } from "./stories.js";

copyButtons();
live().catch((error) => say($("target-says"), `The page cannot begin: ${error.message}.`));
limits();
stories();
