import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { sniffMediaType } from '../../tasks/documents/media.ts'
import { extensionOf, formatOf } from '../../tasks/rag/formats.ts'
import { createChildPool } from '../../workers/children/pool.ts'
import { analyzeFile } from '../../workers/providers/documents/analysis.ts'
import { openDocument } from '../../workers/providers/documents/documents.ts'
import { indexBombs } from '../bombs.ts'
import { documentBombs } from '../document-bombs.ts'
import { textPdf } from '../pdfs.ts'
import { BOMB_CPU_MS } from '../runs.ts'

/**
 * Every bomb of documents and of files to index through its reader, in children as a worker has them, with limits that are shorter: each ends as
 * something that its sender is told, and the children serve whoever comes next.
 */

const pool = createChildPool({ log: { warn: () => {} } as never, checkMs: 20 })
after(() => pool.close())
const { signal } = new AbortController()
const limits = { cpuMs: BOMB_CPU_MS }

describe('what is indexed', () => {
  for (const bomb of indexBombs(2 ** 17))
    test(bomb.name, async () => {
      const { fileName } = bomb
      const file = { format: formatOf(extensionOf(fileName)), fileName }
      const analyzed = await analyzeFile(pool, bomb.make(), file, signal, limits)
      if ('reason' in analyzed) assert.match(analyzed.reason, /^(more than \d+ |it (needs|takes|crashed) )/)
      else assert.ok(analyzed.chunks.length < 1000)
    })
})

describe('documents', () => {
  // Now that it has been loaded once, a child's code takes less of the limits.
  before(async () => {
    const good = await textPdf(1)
    const options = { mediaType: 'application/pdf', vision: 'none', maxPages: 1, signal } as const
    const reader = await openDocument(pool, async () => good, options)
    assert.equal((await reader.read(1)).status, 'read')
    await reader.close()
  })

  for (const bomb of documentBombs)
    test(bomb.name, async () => {
      const bytes = bomb.make()
      const mediaType = await sniffMediaType(bytes.subarray(0, 65_536), { fileName: bomb.fileName })
      const options = { mediaType, vision: 'none', maxPages: 20_000, signal, limits } as const
      const reader = await openDocument(pool, async () => bytes, options)
      assert.ok(reader.pageCount <= 1000, `${reader.pageCount} pages`)
      const page = await reader.read(1)
      await reader.close()
      if (page.status === 'unread') assert.match(page.detail!, /^(The|There|Reading|Opening) .+/)
    })
})
