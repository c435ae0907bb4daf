/** Reads blog post files inside a child, one file at a time. */

import { fail } from '../../sql/errors.ts'
import { type Item, type ItemResult, listItems, readItem } from '../../tasks/blog/items.ts'
import { readCpuMs } from '../../tasks/platform/process-usage.ts'
import { reportProgress } from './serve.ts'
import type { Work } from './work.ts'

// Limits of one answer, which keep replies prompt and memory bounded.
const MAX_MS = 500
const MAX_CHARACTERS = 2_000_000
// Allowance for the other fields of a post, including tags.
const OTHER_FIELDS_CHARACTERS = 10_000
// Names are only displayed, but a path in an archive may be 64 KiB long.
const MAX_NAME_CHARACTERS = 300

let items: readonly Item[] = []

let [startedMs, maxMs] = [0, 0]

export async function open(
  bytes: Buffer,
  { fileName, format, cpuMs: max }: Work['posts.open']['request'],
): Promise<Work['posts.open']['answer']> {
  startedMs = readCpuMs()
  maxMs = max
  items = await listItems(fileName, format, bytes)
  return items.map(({ file }) => file.slice(0, MAX_NAME_CHARACTERS))
}

export async function read({ from, to }: Work['posts.read']['request']): Promise<readonly ItemResult[]> {
  const deadline = performance.now() + MAX_MS
  if (readCpuMs() - startedMs > maxMs)
    throw fail('import.too_complex', {
      reason: `takes more than ${Math.round(maxMs / 1000)} s of CPU time`,
    })
  const done: ItemResult[] = []
  let characters = 0
  for (let n = from; n < to && performance.now() < deadline && characters < MAX_CHARACTERS; n++) {
    reportProgress(n)
    const one = await readItem(items[n]!)
    characters += 'post' in one ? one.post.content.length + OTHER_FIELDS_CHARACTERS : one.message.length
    done.push(one)
  }
  return done
}

export function close(): void {
  items = []
}
