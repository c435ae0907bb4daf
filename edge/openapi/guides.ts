import { readFileSync } from 'node:fs'

const GUIDES_FOLDER = new URL('../guides/', import.meta.url)

/**
 * Returns the Markdown of `edge/guides/NAME.md` without the title, which the reference adds; null if there is no such
 * file.
 */
export function readGuide(name: string): string | null {
  try {
    return readFileSync(new URL(`${name}.md`, GUIDES_FOLDER), 'utf8').replace(/^# .*\n+/, '')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
}
