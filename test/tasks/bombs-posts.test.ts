import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { Failure } from '../../sql/errors.ts'
import { createChildPool } from '../../workers/children/pool.ts'
import { openPosts } from '../../workers/providers/documents/posts.ts'
import { type Bomb, postBombs, zipBombs } from '../bombs.ts'
import { BOMB_CPU_MS } from '../runs.ts'

/**
 * Every bomb of posts through their reader, in children as a worker has them, with limits that are shorter: each ends as something
 * that its sender is told, and the children serve whoever comes next.
 */

const pool = createChildPool({ log: { warn: () => {} } as never, checkMs: 20 })
after(() => pool.close())
const { signal } = new AbortController()
const limits = { cpuMs: BOMB_CPU_MS }

/** What the file of a post became: its error, or that there was none. */
async function importOf(
  { fileName, make }: Bomb,
  max = { limits, wholeCpuMs: 1.5 * BOMB_CPU_MS },
): Promise<string> {
  const format = fileName.endsWith('.json') ? 'json' : fileName.endsWith('.zip') ? 'zip' : 'markdown'
  try {
    const reader = await openPosts(pool, { name: fileName, format, bytes: make() }, { signal, ...max })
    try {
      const messages: string[] = []
      for await (const { read } of reader.read()) messages.push('post' in read ? 'imported' : read.message)
      return messages.join('; ')
    } finally {
      reader.close()
    }
  } catch (error) {
    if (error instanceof Failure) return error.detail
    throw error
  }
}

const TOLD =
  /^(imported|The file cannot be imported: |Item 1: |The file (takes|needs|crashed)|The front matter |A line of |\w+: (is too long|can't be))/

async function importGood(): Promise<void> {
  const bytes = Buffer.from('# Good\n\nnews')
  const reader = await openPosts(pool, { name: 'good.md', format: 'markdown', bytes }, { signal })
  for await (const { read } of reader.read()) assert.ok('post' in read && read.post.title === 'Good')
  reader.close()
}

describe('posts', () => {
  // Now that it has been loaded once, a child's code takes less of the limits.
  before(importGood)

  for (const bomb of [...postBombs, ...zipBombs])
    test(bomb.name, async () => {
      const told = await importOf(bomb)
      assert.match(told, TOLD)
      assert.doesNotMatch(told, /call stack|allocation|internal/i)
    })
})

test('files that take long together are given up as a whole, though none does by itself', async () => {
  const bomb = zipBombs.find(({ name }) => name === 'files that take a second each')!
  const told = await importOf(bomb, { limits: { cpuMs: 20_000 }, wholeCpuMs: 500 })
  assert.equal(told, 'The file cannot be imported: it takes more than 1 s of computing')
})

test('the children are as good as new', async () => {
  await importGood()
  assert.ok(pool.rssBytes < 2 ** 30)
})
