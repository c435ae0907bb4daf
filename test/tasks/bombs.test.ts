import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { Failure } from '../../sql/errors.ts'
import { sniffMediaType } from '../../tasks/documents/media.ts'
import { extensionOf, formatOf } from '../../tasks/rag/formats.ts'
import { createChildPool } from '../../workers/children/pool.ts'
import { analyzeFile } from '../../workers/providers/analysis.ts'
import { openDocument } from '../../workers/providers/documents.ts'
import { openPosts } from '../../workers/providers/posts.ts'
import { type Bomb, indexBombs, postBombs } from '../bombs.ts'
import { documentBombs } from '../document-bombs.ts'

/**
 * Every bomb through the reader that it is for, in children as a worker has them, with limits that are shorter: each ends as
 * something that its sender is told, and the children serve whoever comes next.
 */

const pool = createChildPool({ log: { warn: () => {} } as never })
after(() => pool.close())
const { signal } = new AbortController()
const limits = { cpuMs: 2000 }

/** What the file of a post became: its error, or that there was none. */
async function importOf({ fileName, make }: Bomb): Promise<string> {
  const format = fileName.endsWith('.json') ? 'json' : 'markdown'
  try {
    const reader = await openPosts(pool, { name: fileName, format, bytes: make() }, { signal, limits })
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
  /^(imported|The file cannot be imported: it |Item 1: |The file (takes|needs|crashed)|The front matter |A line of |\w+: (is too long|can't be))/

describe('posts', () => {
  for (const bomb of postBombs)
    test(bomb.name, async () => {
      const told = await importOf(bomb)
      assert.match(told, TOLD)
      assert.doesNotMatch(told, /call stack|allocation|internal/i)
    })
})

describe('what is indexed', () => {
  for (const bomb of indexBombs(2 ** 18))
    test(bomb.name, async () => {
      const { fileName } = bomb
      const file = { format: formatOf(extensionOf(fileName)), fileName }
      const analyzed = await analyzeFile(pool, bomb.make(), file, signal, limits)
      if ('reason' in analyzed) assert.match(analyzed.reason, /^(more than \d+ |it (needs|takes|crashed) )/)
      else assert.ok(analyzed.chunks.length < 2000)
    })
})

describe('documents', () => {
  for (const bomb of documentBombs)
    test(bomb.name, async () => {
      const bytes = bomb.make()
      const mediaType = await sniffMediaType(bytes.subarray(0, 65_536), { fileName: bomb.fileName })
      const options = { vision: 'none', maxPages: 20_000, signal, limits } as const
      const reader = await openDocument(pool, async () => bytes, mediaType, options)
      assert.ok(reader.pageCount <= 10, `${reader.pageCount} pages`)
      const page = await reader.read(1)
      await reader.close()
      if (page.status === 'unread') assert.match(page.detail!, /^(The|There|Reading|Opening) .+/)
    })
})

test('the children are as good as new', async () => {
  const reader = await openPosts(
    pool,
    { name: 'good.md', format: 'markdown', bytes: Buffer.from('# Good\n\nnews') },
    { signal },
  )
  for await (const { read } of reader.read()) assert.ok('post' in read && read.post.title === 'Good')
  reader.close()
  assert.ok(pool.rssBytes < 2 ** 30)
})
