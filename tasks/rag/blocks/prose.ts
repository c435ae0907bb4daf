import { type Block, linesOf } from './block.ts'

/** Returns the paragraphs of a text, which blank lines separate. */
export function splitProse(text: string): Block[] {
  const blocks: Block[] = []
  let start: number | null = null
  for (const line of linesOf(text)) {
    if (line.text.trim() !== '') start ??= line.start
    else if (start !== null) {
      blocks.push({ start, end: line.start, path: [] })
      start = null
    }
  }
  if (start !== null) blocks.push({ start, end: text.length, path: [] })
  return blocks
}
