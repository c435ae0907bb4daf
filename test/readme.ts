import { readFileSync, writeFileSync } from 'node:fs'
import { pathToFileURL } from 'node:url'

/** `npm run readme`: copies the list of settings from `.env.example` into the README. */

const README = new URL('../README.md', import.meta.url)
const SETTINGS = new URL('../.env.example', import.meta.url)

export function readReadme(): string {
  return readFileSync(README, 'utf8')
}

/** The README, and the pages for operators that it leads to. */
export function readGuides(): string {
  const pages = ['database.md', 'operating.md'].map((name) => new URL(`../deploy/${name}`, import.meta.url))
  return [readReadme(), ...pages.map((page) => readFileSync(page, 'utf8'))].join('\n')
}

/** The README with the settings as they are. */
export function withSettings(readme: string): string {
  const list = readFileSync(SETTINGS, 'utf8').trimEnd()
  return readme.replace(
    /<!-- settings -->[\s\S]*<!-- \/settings -->/,
    () => `<!-- settings -->\n\`\`\`sh\n${list}\n\`\`\`\n<!-- /settings -->`,
  )
}

/** Its fenced blocks. */
export function blocksOf(readme: string): { readonly language: string; readonly text: string }[] {
  return [...readme.matchAll(/^```(\w*)\n([\s\S]*?)^```$/gm)].map(([, language, text]) => ({
    language: language!,
    text: text!,
  }))
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href)
  writeFileSync(README, withSettings(readReadme()))
