import { compare } from "./compare.js";
import { $, say } from "./dom.js";
import { live } from "./live.js";

compare();
live().catch((error) => say($("target-says"), `The page cannot begin: ${error.message}.`));
