import { readFileSync, writeFileSync } from 'node:fs'
import { pathToFileURL } from 'node:url'

/**
 * Tidies package-lock.json, part of `npm run fix`. npm checks `engines` against the Node that runs npm, but the project
 * brings its own. The install script of onnxruntime-node downloads CUDA libraries from another registry; npm runs a
 * script only if the lock names it. (`allowScripts` of package.json does the same, from npm 11 on.)
 */

export const LOCK = new URL('../package-lock.json', import.meta.url)

interface Lock {
  packages: Record<string, { engines?: unknown; hasInstallScript?: boolean }>
}

/** The lock file without `engines` and without that script. */
export function tidyLock(text: string): string {
  const lock = JSON.parse(text) as Lock
  for (const [path, entry] of Object.entries(lock.packages)) {
    delete entry.engines
    if (path.endsWith('node_modules/onnxruntime-node')) delete entry.hasInstallScript
  }
  return `${JSON.stringify(lock, null, 2)}\n`
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href)
  writeFileSync(LOCK, tidyLock(readFileSync(LOCK, 'utf8')))
