// The console: plain JavaScript modules, no build step. The server renders every page whole; these add keys, live
// updates and answers. Each module does nothing on a page without its elements.
import "./frame.js";
import "./clocks.js";
import "./keys.js";
import "./now.js";
import "./files.js";
import "./rules.js";
import "./timeline.js";
import "./approve.js";
import "./diff.js";
import "./live.js";
import "./output.js";
import "./undo.js";
import "./runs.js";
import "./tools.js";
import { startShown } from "./dom.js";

startShown();
