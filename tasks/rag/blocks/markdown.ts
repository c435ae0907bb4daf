import { type Block, linesOf } from './block.ts'

const HEADING_PATTERN = /^ {0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#*)?[ \t]*$/
const FENCE_PATTERN = /^ {0,3}(`{3,}|~{3,})/
const MAX_HEADING_LENGTH = 500
const HEADING_UNDERLINE_PATTERN = /^ {0,3}(=+|-+)[ \t]*$/

/**
 * Splits Markdown into paragraphs, lists, tables and code fences, each with its headings. A heading begins a block.
 * `above` has the headings that the text is below.
 */
export function splitMarkdown(text: string, above: readonly string[] = []): Block[] {
  const lines = linesOf(text)
  const blocks: Block[] = []
  let path = above
  let start = 0
  let fence: string | null = null
  let onlyHeadings = true
  const close = (end: number): void => {
    if (end > start) blocks.push({ start, end, path })
    start = end
    onlyHeadings = true
  }
  for (const [i, line] of lines.entries()) {
    const mark = FENCE_PATTERN.exec(line.text)?.[1]
    if (fence !== null) {
      if (mark?.startsWith(fence) && line.text.trim() === mark) fence = null
      continue
    }
    if (mark !== undefined) {
      fence = mark
      onlyHeadings = false
      continue
    }
    const heading = headingOf(line.text, lines[i + 1]?.text)
    if (heading !== null) {
      close(line.start)
      path = [...path.slice(0, heading.level - 1), heading.text]
    } else if (line.text.trim() === '') {
      // A heading stays with the text below it.
      if (!onlyHeadings) close(line.start)
    } else if (!HEADING_UNDERLINE_PATTERN.test(line.text)) onlyHeadings = false
  }
  close(text.length)
  return blocks
}

function headingOf(line: string, next: string | undefined): { level: number; text: string } | null {
  if (line.length > MAX_HEADING_LENGTH) return null
  const marked = HEADING_PATTERN.exec(line)
  if (marked !== null) return { level: marked[1]!.length, text: toPlainText(marked[2] ?? '') }
  // Setext headings: underlined lines, except lines of a list or table.
  if (next === undefined || !/^ {0,3}[^\s>|#*+-]/.test(line)) return null
  const underline = HEADING_UNDERLINE_PATTERN.exec(next)?.[1]
  if (underline === undefined || underline.length < 3) return null
  return { level: underline.startsWith('=') ? 1 : 2, text: toPlainText(line) }
}

/** The text of a heading, without link targets, emphasis and escapes. */
function toPlainText(text: string): string {
  return text
    .replace(/!?\[([^\]]*)\](?:\([^)]*\)|\[[^\]]*\])/g, '$1')
    .replace(/\\([!-/:-@[-`{-~])|[`*_]+/g, (_, sign = '') => sign)
    .trim()
    .slice(0, 200)
}
