import { escapeCell, escapeHeading, escapeLine, escapeStart, splitLines } from './escape.ts'

/** Writes blocks as GitHub Flavored Markdown. The only writer of Markdown of pages. */

/** A part of a page. Texts are plain, with a line feed for each line end within the block. */
export type Block =
  /**
   * A paragraph. In a list, `depth` is the number of items around it. `isWrapped` is true if its lines end where the
   * page does.
   */
  | { readonly kind: 'text'; readonly text: string; readonly depth: number; readonly isWrapped?: boolean }
  | { readonly kind: 'heading'; readonly text: string; readonly level: number }
  /** An item of a list. `depth` counts from 0; `marker` is `-`, a number such as `3.`, or null for the next number. */
  | { readonly kind: 'item'; readonly text: string; readonly depth: number; readonly marker: string | null }
  | { readonly kind: 'code'; readonly text: string }
  | { readonly kind: 'table'; readonly rows: readonly (readonly string[])[] }

/** The items around the end of the Markdown so far. */
type OpenItem = { readonly width: number; readonly number: number | null }

/** Writes blocks. Empty ones are left out. */
export function renderMarkdown(blocks: readonly Block[]): string {
  const items: OpenItem[] = []
  let markdown = ''
  const append = (text: string, separator: string): void => {
    if (text !== '') markdown += (markdown === '' ? '' : separator) + text
  }
  for (const block of blocks) {
    if (block.kind === 'item') {
      if (block.text.trim() !== '') append(...renderItem(block, items))
      continue
    }
    items.length = Math.min(items.length, block.kind === 'text' ? block.depth : 0)
    append(renderBlock(block, items), '\n\n')
  }
  return markdown
}

function renderBlock(block: Exclude<Block, { kind: 'item' }>, items: readonly OpenItem[]): string {
  switch (block.kind) {
    case 'heading': {
      const text = escapeHeading(block.text)
      return text === '' ? '' : `${'#'.repeat(Math.min(Math.max(block.level, 1), 6))} ${text}`
    }
    case 'text': {
      const indent = indentOf(items)
      const lines = renderLines(block.text, indent, block.isWrapped === true ? '\n' : '\\\n')
      return lines === '' ? '' : indent + lines
    }
    case 'code':
      return renderCode(block.text)
    case 'table':
      return renderTable(block.rows)
  }
}

const indentOf = (items: readonly OpenItem[]): string =>
  ' '.repeat(items.reduce((sum, { width }) => sum + width, 0))

/** Writes lines, by default with a hard break after each but the last. */
const renderLines = (text: string, indent: string, end = '\\\n'): string =>
  splitLines(text).map(escapeLine).join(`${end}${indent}`)

function renderItem(
  { text, depth, marker }: Extract<Block, { kind: 'item' }>,
  items: OpenItem[],
): [text: string, separator: string] {
  const at = Math.min(depth, items.length)
  const isFirst = items.length === 0
  const sibling = items[at]
  items.length = at
  const number =
    marker === '-' ? null : marker === null ? (sibling?.number ?? 0) + 1 : Number.parseInt(marker, 10)
  const mark = number === null ? '-' : `${number % 1_000_000_000}${marker?.slice(-1) ?? '.'}`
  const indent = indentOf(items)
  items.push({ width: mark.length + 1, number })
  const continues = sibling !== undefined && (sibling.number === null) === (number === null)
  // A list that begins with another number than 1 cannot follow a paragraph directly.
  const isTight = !isFirst && (continues || (sibling === undefined && (number === null || number === 1)))
  return [`${indent}${mark} ${renderLines(text, indentOf(items))}`, isTight ? '\n' : '\n\n']
}

function renderCode(text: string): string {
  const code = text.replace(/^\s*\n|\s+$/g, '')
  if (code === '') return ''
  const longest = (code.match(/`{3,}/g) ?? []).reduce((max, { length }) => Math.max(max, length), 2)
  const fence = '`'.repeat(longest + 1)
  return `${fence}\n${code}\n${fence}`
}

/**
 * Writes a table with its first row as header. Rows before it with only one cell are its title, and become paragraphs.
 * Blank rows, and blank columns at the sides, are left out.
 */
function renderTable(all: readonly (readonly string[])[]): string {
  const filled = all.map(trimEnd).filter((row) => row.length > 0)
  const first = filled.reduce(
    (min, row) =>
      Math.min(
        min,
        row.findIndex((cell) => cell !== ''),
      ),
    Number.MAX_SAFE_INTEGER,
  )
  const rows = filled.map((row) => row.slice(first))
  const columns = rows.reduce((max, row) => Math.max(max, row.length), 0)
  const isTitle = (row: readonly string[]): boolean => row.filter((cell) => cell !== '').length < 2
  const start =
    columns < 2
      ? 0
      : Math.max(
          0,
          rows.findIndex((row) => !isTitle(row)),
        )
  const [header, ...others] = rows.slice(start)
  if (header === undefined) return ''
  const lines = [
    toRow([...header, ...Array<string>(columns - header.length).fill('')]),
    `|${' --- |'.repeat(columns)}`,
    ...others.map(toRow),
  ]
  const titles = rows.slice(0, start).map((row) => escapeStart(row.join(' ').trim()))
  return [...titles, lines.join('\n')].join('\n\n')
}

function trimEnd(row: readonly string[]): readonly string[] {
  const cells = row.map(escapeCell)
  let length = cells.length
  while (length > 0 && cells[length - 1] === '') length--
  return cells.slice(0, length)
}

const toRow = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`
