/** Finds the title of a post in its Markdown. */

// Number of characters that are searched.
const SEARCHED_CHARACTERS = 10_000
const ATX = /^ {0,3}(#{1,6})[ \t]+(\S.*)$/
const UNDERLINE = /^ {0,3}(=+|-+)[ \t]*$/
const HTML_HEADING = /^\s*<h([1-6])\b[^>]{0,500}>(.*?)<\/h\1>/i
const CODE_FENCE = /^ {0,3}(`{3,}|~{3,})/
// Matches a line that starts another block than a paragraph.
const OTHER_BLOCK = /^(?: {0,3}(?:[>#|<]|[-*+] |\d+[.)] |[-*_=] ?[-*_=])|\t| {4})/

interface Heading {
  readonly level: number
  readonly text: string
}

/**
 * Returns the text of the first heading of level 1, else of a heading that begins the post, without markup; undefined if
 * there is none. Ignores code blocks.
 */
export function findHeading(content: string): string | undefined {
  const headings = listHeadings(content.slice(0, SEARCHED_CHARACTERS).split(/\r?\n/))
  const heading = headings.find(({ level }) => level === 1) ?? headings.find(({ isFirst }) => isFirst)
  return heading === undefined ? undefined : heading.text
}

function listHeadings(lines: readonly string[]): readonly (Heading & { isFirst: boolean })[] {
  const found: (Heading & { isFirst: boolean })[] = []
  let fence: string | null = null
  let isFirst = true
  for (const [i, line] of lines.entries()) {
    const mark = CODE_FENCE.exec(line)?.[1]
    if (fence !== null) {
      if (mark?.startsWith(fence)) fence = null
      continue
    }
    if (mark !== undefined) fence = mark
    const heading = mark === undefined ? parseHeading(line, lines[i + 1] ?? '', lines[i - 1] ?? '') : null
    if (heading !== null && heading.text !== '') found.push({ ...heading, isFirst })
    if (line.trim() !== '') isFirst = false
  }
  return found
}

function parseHeading(line: string, next: string, previous: string): Heading | null {
  const [, marks, text] = ATX.exec(line) ?? []
  if (marks !== undefined)
    return { level: marks.length, text: stripMarkup(text!.replace(/(?:[ \t]#+|#+)[ \t]*$/, '')) }
  const [, level, inner] = HTML_HEADING.exec(line) ?? []
  if (level !== undefined) return { level: Number(level), text: stripMarkup(inner!) }
  const underline = UNDERLINE.exec(next)?.[1]
  if (underline === undefined || line.trim() === '' || previous.trim() !== '' || OTHER_BLOCK.test(line))
    return null
  return { level: underline[0] === '=' ? 1 : 2, text: stripMarkup(line) }
}

const ENTITIES: Readonly<Record<string, string>> = {
  amp: '&',
  lt: '<',
  gt: '>',
  quot: '"',
  nbsp: ' ',
  '#39': "'",
}

/** Returns the text of one line of Markdown, without links, pictures, emphasis, tags and attributes. */
function stripMarkup(line: string): string {
  return line
    .slice(0, 1000)
    .replace(/\s*\{[#.:][^{}]*\}\s*$/, '')
    .replace(/!?\[([^[\]]*)\](?:\([^()]*\)|\[[^[\]]*\])/g, '$1')
    .replace(/<((?:https?:|mailto:)[^<>\s]*)>/g, '$1')
    .replace(/<\/?[a-z][^<>]*>/gi, '')
    .replace(/(`+)(.+?)\1/g, '$2')
    .replace(/(\*{1,3}|~~)(?=\S)(.+?)(?<=\S)\1/g, '$2')
    .replace(/(?<![\p{L}\p{N}])(_{1,3})(?=\S)(.+?)(?<=\S)\1(?![\p{L}\p{N}])/gu, '$2')
    .replace(/\\([!-/:-@[-`{-~])/g, '$1')
    .replace(/&(amp|lt|gt|quot|nbsp|#39);/g, (_, name: string) => ENTITIES[name]!)
    .replace(/\s+/g, ' ')
    .trim()
}
