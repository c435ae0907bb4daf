import { type Block, linesOf, trimBlock } from './blocks/block.ts'
import { splitCode } from './blocks/code.ts'
import { splitHtml } from './blocks/html.ts'
import { splitMarkdown } from './blocks/markdown.ts'
import { splitProse } from './blocks/prose.ts'
import { splitTable } from './blocks/table.ts'

/** Cuts a file's text into chunks for retrieval. */

export type Format = 'text' | 'markdown' | 'code' | 'html' | 'pdf'

/** A piece of a text. Offsets count UTF-16 code units of the text; lines count from 1. */
export interface Chunk {
  readonly content: string
  readonly startOffset: number
  readonly endOffset: number
  readonly startLine: number
  readonly endLine: number
  readonly page: number | null
  /** Headings or declarations that enclose the chunk, joined by ` > `; null if there are none. */
  readonly heading: string | null
}

// About 300 words: enough for most paragraphs and their neighbours, and within the 512 word pieces that embedding
// models read.
export const MAX_CHUNK_CHARACTERS = 1600
// A shorter section shares a chunk with the next section.
const MIN_CHUNK_CHARACTERS = 400

/** A page within a text. */
export interface PageStart {
  readonly start: number
  readonly isMarkdown: boolean
}

/** Cuts a text into chunks, if possible at headings, functions and paragraphs, otherwise at lines and sentences. */
export function splitIntoChunks(text: string, format: Format, pages: readonly PageStart[] = []): Chunk[] {
  const blocks = splitIntoBlocks(text, format, pages)
    .flatMap((block) => trimBlock(text, block) ?? [])
    .flatMap((block) => splitBlock(text, block))
  const lines = linesOf(text).map(({ start }) => start)
  return groupBlocks(text, blocks).map((group) => toChunk(text, lines, group))
}

function splitIntoBlocks(text: string, format: Format, pages: readonly PageStart[]): readonly Block[] {
  switch (format) {
    case 'markdown':
      return splitMarkdown(text)
    case 'code':
      return splitCode(text, MAX_CHUNK_CHARACTERS)
    case 'html':
      return splitHtml(text)
    case 'pdf':
      return splitPages(text, pages)
    case 'text':
      return splitProse(text)
  }
}

/** Splits pages one by one. A page begins below the headings that the page before it ends below. */
function splitPages(text: string, pages: readonly PageStart[]): Block[] {
  let path: readonly string[] = []
  return pages.flatMap(({ start, isMarkdown }, i) => {
    const page = text.slice(start, pages[i + 1]?.start)
    const blocks = isMarkdown
      ? splitMarkdown(page, path)
      : splitProse(page).map((block) => ({ ...block, path }))
    path = blocks.at(-1)?.path ?? path
    return blocks.map((block) => ({
      ...block,
      start: start + block.start,
      end: start + block.end,
      page: i + 1,
    }))
  })
}

/** Returns the number (from 1) of the line at a position. `starts` holds the start positions in ascending order. */
function findNumberAt(position: number, starts: readonly number[]): number {
  let [low, high] = [0, starts.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if (starts[middle]! <= position) low = middle + 1
    else high = middle
  }
  return Math.max(1, low)
}

/** Splits a block into parts of at most {@link MAX_CHUNK_CHARACTERS}. */
function splitBlock(text: string, block: Block): readonly Block[] {
  const source = textOf(text, block)
  if (source.length <= MAX_CHUNK_CHARACTERS) return [block]
  const rows = block.text === undefined ? splitTable(text, block, MAX_CHUNK_CHARACTERS) : null
  if (rows !== null) return rows.flatMap((part) => splitBlock(text, trimBlock(text, part) ?? part))
  const parts: Block[] = []
  for (let from = 0; from < source.length; ) {
    const to =
      from + MAX_CHUNK_CHARACTERS >= source.length
        ? source.length
        : from + findCutPosition(source.slice(from, from + MAX_CHUNK_CHARACTERS))
    const piece = source.slice(from, to)
    // The part has no known position if the block's text differs from the source.
    if (block.text === undefined) parts.push({ ...block, start: block.start + from, end: block.start + to })
    else parts.push({ ...block, text: piece.trim() })
    from = to
  }
  return parts.flatMap((part) => (part.text === undefined ? (trimBlock(text, part) ?? []) : [part]))
}

/**
 * Returns the position at which to cut a piece of maximum length: after a line, a sentence or a word, else within a
 * word.
 */
function findCutPosition(piece: string): number {
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

/** Groups adjacent blocks that fit into one chunk. */
function groupBlocks(text: string, blocks: readonly Block[]): Block[][] {
  const groups: Block[][] = []
  let size = 0
  for (const block of blocks) {
    const length = textOf(text, block).length
    const group = groups.at(-1)
    const last = group?.at(-1)
    const spans =
      last === undefined || [...group!, block].some((one) => one.text !== undefined)
        ? size + length + 2
        : block.end - group![0]!.start
    const apart = last !== undefined && size >= MIN_CHUNK_CHARACTERS && !hasSamePath(last, block)
    if (group === undefined || spans > MAX_CHUNK_CHARACTERS || apart || last?.page !== block.page) {
      groups.push([block])
      size = length
    } else {
      group.push(block)
      size = spans
    }
  }
  return groups
}

const textOf = (text: string, block: Block): string => block.text ?? text.slice(block.start, block.end)

function hasSamePath(one: Block, other: Block): boolean {
  return one.path.length === other.path.length && one.path.every((name, i) => name === other.path[i])
}

function toChunk(text: string, lines: readonly number[], group: readonly Block[]): Chunk {
  const [first, last] = [group[0]!, group.at(-1)!]
  const apart = first.path.findIndex((name, i) => group.some(({ path }) => path[i] !== name))
  const path = apart === -1 ? first.path : first.path.slice(0, apart)
  const content = group.every((block) => block.text === undefined)
    ? text.slice(first.start, last.end)
    : group.map((block) => textOf(text, block)).join('\n\n')
  return {
    content,
    startOffset: first.start,
    endOffset: last.end,
    startLine: findNumberAt(first.start, lines),
    endLine: findNumberAt(Math.max(first.start, last.end - 1), lines),
    page: first.page ?? null,
    heading: path.length === 0 ? null : path.join(' > ').slice(0, 500),
  }
}
