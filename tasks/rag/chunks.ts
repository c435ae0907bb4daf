import { type Block, linesOf, trimmed } from './blocks/block.ts'
import { codeBlocks } from './blocks/code.ts'
import { htmlBlocks } from './blocks/html.ts'
import { markdownBlocks } from './blocks/markdown.ts'
import { proseBlocks } from './blocks/prose.ts'

/** Cuts a file's text into chunks for retrieval. */

export type Format = 'text' | 'markdown' | 'code' | 'html' | 'pdf'

/** A piece of a text; offsets are characters (UTF-16) of the text, lines count from 1. */
export interface Chunk {
  readonly content: string
  readonly startOffset: number
  readonly endOffset: number
  readonly startLine: number
  readonly endLine: number
  readonly page: number | null
  /** The headings above it, or the names of what it is part of, joined by ` > `. */
  readonly heading: string | null
}

// About 300 words: most paragraphs with their neighbours, and within what embedding models read (512 word pieces).
export const MAX_CHARACTERS = 1600
// A section shorter than this shares its chunk with the next one.
const FEWEST_CHARACTERS = 400

/** Cuts a text by its own structure: headings, functions, paragraphs, then lines and sentences. */
export function chunksOf(text: string, format: Format, pageStarts: readonly number[] = []): Chunk[] {
  const blocks = blocksOf(text, format, pageStarts)
    .flatMap((block) => trimmed(text, block) ?? [])
    .flatMap((block) => smaller(text, block))
  const lines = linesOf(text).map(({ start }) => start)
  return packed(text, blocks).map((group) => chunkOf(text, lines, group))
}

function blocksOf(text: string, format: Format, pageStarts: readonly number[]): readonly Block[] {
  switch (format) {
    case 'markdown':
      return markdownBlocks(text)
    case 'code':
      return codeBlocks(text, MAX_CHARACTERS)
    case 'html':
      return htmlBlocks(text)
    case 'pdf':
      return proseBlocks(text).map((block) => ({ ...block, page: pageOf(block.start, pageStarts) }))
    case 'text':
      return proseBlocks(text)
  }
}

/** The number, from 1, of the last of ascending positions that is at or before a position. */
function pageOf(position: number, starts: readonly number[]): number {
  let [low, high] = [0, starts.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if (starts[middle]! <= position) low = middle + 1
    else high = middle
  }
  return Math.max(1, low)
}

/** Splits a block into parts that are short enough. */
function smaller(text: string, block: Block): readonly Block[] {
  const whole = block.text ?? text.slice(block.start, block.end)
  if (whole.length <= MAX_CHARACTERS) return [block]
  const parts: Block[] = []
  for (let from = 0; from < whole.length; ) {
    const to =
      from + MAX_CHARACTERS >= whole.length
        ? whole.length
        : from + cutOf(whole.slice(from, from + MAX_CHARACTERS))
    const piece = whole.slice(from, to)
    // If the text of a block differs from the source, the position of a part is unknown.
    if (block.text === undefined) parts.push({ ...block, start: block.start + from, end: block.start + to })
    else parts.push({ ...block, text: piece.trim() })
    from = to
  }
  return parts.flatMap((part) => (part.text === undefined ? (trimmed(text, part) ?? []) : [part]))
}

/** Where to cut a piece of maximum length: after a line, a sentence or a word; within a word only if necessary. */
function cutOf(piece: string): number {
  const half = piece.length / 2
  const line = piece.lastIndexOf('\n') + 1
  if (line > half) return line
  for (const end of [/[.!?。！？]["')\]]?\s/g, /\s/g]) {
    let cut = 0
    for (const { index, 0: found } of piece.matchAll(end)) cut = index + found.length
    if (cut > half) return cut
  }
  const last = piece.charCodeAt(piece.length - 1)
  return last >= 0xd800 && last <= 0xdbff ? piece.length - 1 : piece.length
}

/** Groups adjacent blocks, as many as fit into a chunk. */
function packed(text: string, blocks: readonly Block[]): Block[][] {
  const groups: Block[][] = []
  let size = 0
  for (const block of blocks) {
    const length = (block.text ?? text.slice(block.start, block.end)).length
    const group = groups.at(-1)
    const last = group?.at(-1)
    const spans =
      last === undefined || block.text !== undefined ? size + length + 2 : block.end - group![0]!.start
    const apart = last !== undefined && size >= FEWEST_CHARACTERS && !isSame(last, block)
    if (group === undefined || spans > MAX_CHARACTERS || apart || last?.page !== block.page) {
      groups.push([block])
      size = length
    } else {
      group.push(block)
      size = spans
    }
  }
  return groups
}

function isSame(one: Block, other: Block): boolean {
  return one.path.length === other.path.length && one.path.every((name, i) => name === other.path[i])
}

function chunkOf(text: string, lines: readonly number[], group: readonly Block[]): Chunk {
  const [first, last] = [group[0]!, group.at(-1)!]
  const apart = first.path.findIndex((name, i) => group.some(({ path }) => path[i] !== name))
  const path = apart === -1 ? first.path : first.path.slice(0, apart)
  const content =
    first.text === undefined
      ? text.slice(first.start, last.end)
      : group.map((block) => block.text).join('\n\n')
  return {
    content,
    startOffset: first.start,
    endOffset: last.end,
    startLine: pageOf(first.start, lines),
    endLine: pageOf(Math.max(first.start, last.end - 1), lines),
    page: first.page ?? null,
    heading: path.length === 0 ? null : path.join(' > ').slice(0, 500),
  }
}
