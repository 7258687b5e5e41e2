// Now: digits open what waits.
import { $ } from "./dom.js";
import { onKey } from "./keys.js";

onKey((key, _event, typing) => {
  if (typing || !/^[1-9]$/.test(key)) return false;
  const link = $(`[data-number="${key}"]`);
  link?.click();
  return Boolean(link);
});
