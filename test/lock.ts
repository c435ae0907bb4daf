import { readFileSync, writeFileSync } from 'node:fs'
import { pathToFileURL } from 'node:url'

/**
 * Tidies package-lock.json for `npm run fix`. npm checks `engines` against the Node that runs npm, but the project
 * brings its own Node. The install script of onnxruntime-node downloads CUDA libraries from another registry. npm runs
 * an install script only if the lock file mentions it. From npm 11 on, `allowScripts` in package.json also prevents
 * that.
 */

export const LOCK = new URL('../package-lock.json', import.meta.url)

interface Lock {
  packages: Record<string, { engines?: unknown; hasInstallScript?: boolean }>
}

/** Returns the lock file without `engines` and without that install script. */
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
