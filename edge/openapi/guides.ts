import { readFileSync } from 'node:fs'

const GUIDES = new URL('../guides/', import.meta.url)

/** The Markdown of `edge/guides/NAME.md` without its title, which the reference shows itself; null if there is no such file. */
export function readGuide(name: string): string | null {
  try {
    return readFileSync(new URL(`${name}.md`, GUIDES), 'utf8').replace(/^# .*\n+/, '')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
}
