import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'
import { type Browser, chromium } from 'playwright-core'

/** Executable names of the system's Chromium, which is needed because playwright-core includes no browser. */

const BROWSER_NAMES = ['chromium', 'chromium-browser', 'google-chrome-stable', 'google-chrome']

export const SKIP_REASON = `No Chromium is installed: browser tests need one of ${BROWSER_NAMES.join(', ')} in PATH, or CHROMIUM=/path/to/it. On Debian: apt-get install chromium`

/** Returns the path of the Chromium executable. If none is installed, prints how to install it and returns null. */
export function findChromium(): string | null {
  const { CHROMIUM, PATH = '' } = process.env
  const candidates = CHROMIUM
    ? [CHROMIUM]
    : PATH.split(delimiter).flatMap((folder) => BROWSER_NAMES.map((name) => join(folder, name)))
  const found = candidates.find(isExecutable) ?? null
  if (found === null) process.stderr.write(`${SKIP_REASON}\n`)
  return found
}

export function launch(executablePath: string): Promise<Browser> {
  // Disable Chromium's sandbox: it does not work as root, and the pages are trusted.
  return chromium.launch({
    executablePath,
    args: ['--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu'],
  })
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK)
    return true
  } catch {
    return false
  }
}
