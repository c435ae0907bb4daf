import { type Block, linesOf } from './block.ts'

const ROW = /^ {0,3}\|/
const DELIMITER_ROW = /^ {0,3}\|(?:[ \t]*:?-+:?[ \t]*\|)+[ \t]*$/

/**
 * Splits a block that has a Markdown table into parts of at most `max` characters, at rows. Each further part repeats
 * the header row. Null if the block has no table of several parts, or if its header is too long to repeat.
 */
export function splitTable(text: string, block: Block, max: number): readonly Block[] | null {
  const lines = linesOf(text.slice(block.start, block.end))
  const at = lines.findIndex((line, i) => ROW.test(line.text) && DELIMITER_ROW.test(lines[i + 1]?.text ?? ''))
  if (at === -1) return null
  const header = `${lines[at]!.text}\n${lines[at + 1]!.text}\n`
  // The first part also has the headings above the table.
  let size = lines[at + 2]?.start ?? 0
  if (at + 2 >= lines.length || Math.max(size, header.length) > max / 2) return null
  const starts = [0]
  for (const { start, text: row } of lines.slice(at + 2)) {
    const added = row.length + 1
    if (size + added > max && size > header.length) {
      starts.push(start)
      size = header.length
    }
    size += added
  }
  if (starts.length === 1) return null
  return starts.map((start, i) => {
    const part = {
      ...block,
      start: block.start + start,
      end: i + 1 < starts.length ? block.start + starts[i + 1]! : block.end,
    }
    return i === 0 ? part : { ...part, text: header + text.slice(part.start, part.end).trimEnd() }
  })
}
