import { globSync, readFileSync } from 'node:fs'

/** Reads the documents whose examples are tested. */

const ROOT = new URL('../', import.meta.url)
const read = (name: string): string => readFileSync(new URL(name, ROOT), 'utf8')

export function readReadme(): string {
  return read('README.md')
}

/** Returns the guides for API users by path. */
export function readGuides(): ReadonlyMap<string, string> {
  return new Map(globSync('edge/guides/*.md', { cwd: ROOT }).map((path) => [path, read(path)]))
}

/** Returns the texts of README, CONTRIBUTING and the pages for operators. */
export function readOperatorPages(): string {
  const pages = ['README.md', 'CONTRIBUTING.md', ...globSync('deploy/*.md', { cwd: ROOT })]
  return pages.map(read).join('\n')
}

/** Returns the fenced blocks of a Markdown text. */
export function parseBlocks(text: string): { readonly language: string; readonly text: string }[] {
  return [...text.matchAll(/^```(\w*)\n([\s\S]*?)^```$/gm)].map(([, language, block]) => ({
    language: language!,
    text: block!,
  }))
}
