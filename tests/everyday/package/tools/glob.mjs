import { readdirSync } from 'node:fs';

export function glob(folder, ending) {
  return readdirSync(folder, { recursive: true }).filter((name) => name.endsWith(ending)).sort();
}
