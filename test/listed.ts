import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'

const ROOT = new URL('../', import.meta.url)

/**
 * Returns `FILE:LINE` of the first line that starts with the words `start`, to show where a list begins. A word in the
 * middle of a line does not count: the call of this function names it, too.
 */
export function findLine(file: string, start: string): string {
  const lines = readFileSync(new URL(file, ROOT), 'utf8').split('\n')
  const index = lines.findIndex((line) => new RegExp(`^\\s*${start}\\b`).test(line))
  assert.ok(index >= 0, `${file} has no line that starts with ${start}`)
  return `${file}:${index + 1}`
}

/**
 * Asserts that `listed` contains each of `found` exactly once. The message names the differences and the places to edit
 * (`where`).
 */
export function assertListed(
  found: readonly unknown[],
  listed: readonly unknown[],
  where: readonly string[],
): void {
  const [all, known] = [new Set(found.map(String)), new Set(listed.map(String))]
  const missing = [...all].filter((name) => !known.has(name))
  const gone = [...known].filter((name) => !all.has(name))
  const places = where.join(', or to ')
  assert.ok(missing.length === 0, `Add ${missing.join(', ')} to ${places}`)
  assert.deepEqual([all.size, known.size], [found.length, listed.length], `A name occurs twice in ${places}`)
  assert.ok(gone.length === 0, `Remove ${gone.join(', ')} from ${places}`)
}
