// The console: plain JavaScript modules, no build step. The server renders every page whole; these add keys, live
// updates and answers. Each module does nothing on a page without its elements.
import "./frame.js";
import "./clocks.js";
import "./keys.js";
import "./files.js";
import "./rules.js";
import "./tools.js";
import "./timeline.js";
import { startShown } from "./dom.js";

startShown();
