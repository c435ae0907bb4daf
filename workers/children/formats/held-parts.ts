import type { Archive } from './archive.ts'
import { countMarkup, type MarkupRules } from './held-markup.ts'

/** Counts the letters of the parts of an archive. */

/** Counts the letters of parts. A part that is too large for the reader counts nothing: the reader says so. */
export async function countParts(
  archive: Archive,
  paths: Iterable<string>,
  count: (bytes: Uint8Array) => number,
): Promise<number> {
  let total = 0
  for (const path of new Set([...paths].map((one) => one.toLowerCase()))) {
    const bytes = await archive.bytes(path)
    if (bytes !== null) total += count(bytes)
  }
  return total
}

/** Counts the letters of the texts in parts, unless these are too small for a loss. */
export async function countTexts(
  archive: Archive,
  paths: readonly string[],
  rules: MarkupRules,
  enough: number,
): Promise<number> {
  let rest = paths.reduce((sum, path) => sum + archive.size(path), 0)
  let total = 0
  for (const path of new Set(paths)) {
    if (total + rest <= enough) return 0
    const bytes = await archive.bytes(path)
    rest -= archive.size(path)
    if (bytes !== null) total += countMarkup(bytes, rules, enough - total - rest)
  }
  return total
}
