/** A piece of text that belongs together, such as a paragraph, a function, or the beginning of a section. */
export interface Block {
  /** Start position in the text, in characters. */
  readonly start: number
  readonly end: number
  /** The enclosing headings or declarations, outermost first. */
  readonly path: readonly string[]
  /** Page number in a PDF, from 1. */
  readonly page?: number
  /** The block's text; absent if it equals the text at its position. */
  readonly text?: string
}

/** Returns the lines of a text and their start positions, without line endings. */
export function linesOf(text: string): readonly { readonly start: number; readonly text: string }[] {
  const lines: { start: number; text: string }[] = []
  for (let start = 0; start <= text.length; ) {
    const found = text.indexOf('\n', start)
    const end = found === -1 ? text.length : found
    lines.push({ start, text: text.slice(start, end).replace(/\r$/, '') })
    start = end + 1
  }
  return lines
}

/** Removes the blank lines before a block and the white space after it; null if nothing is left. */
export function trimBlock(text: string, block: Block): Block | null {
  let { start, end } = block
  // The first line keeps its indentation, which is significant in code.
  while (start < end && /\s/.test(text[start]!)) {
    const line = text.indexOf('\n', start)
    if (line === -1 || line >= end || text.slice(start, line).trim() !== '') break
    start = line + 1
  }
  while (end > start && /\s/.test(text[end - 1]!)) end--
  return end > start && text.slice(start, end).trim() !== '' ? { ...block, start, end } : null
}
