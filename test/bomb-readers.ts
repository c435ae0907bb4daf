import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { after } from 'node:test'
import { Failure } from '../sql/errors.ts'
import { sniffMediaType } from '../tasks/documents/media.ts'
import { extensionOf, formatOf } from '../tasks/rag/formats.ts'
import { createChildPool } from '../workers/children/pool.ts'
import type { Limits } from '../workers/children/ports.ts'
import { analyzeFile } from '../workers/providers/documents/analysis.ts'
import { openDocument } from '../workers/providers/documents/documents.ts'
import { openPosts } from '../workers/providers/documents/posts.ts'
import { createCutter } from '../workers/providers/voice/cutting.ts'
import type { Bomb } from './bombs.ts'
import { buildTextPdf } from './pdfs.ts'
import { createToneWav } from './recordings.ts'
import { BOMB_CPU_MS } from './runs.ts'

/** Processes bombs in child processes with short limits. Each bomb must yield a result or an error for its sender. */

const { signal } = new AbortController()
const limits = { cpuMs: BOMB_CPU_MS }
const EXPECTED_OUTCOME =
  /^(imported|The file cannot be imported: |Item 1: |The file (takes|needs|crashed)|The front matter |A line of |\w+: (is too long|is not a recognized date))/

export type BombReaders = ReturnType<typeof createBombReaders>

/** Creates readers that share child processes, which stop after the test file. */
export function createBombReaders() {
  const pool = createChildPool({ log: { warn: () => {} } as never, checkMs: 20 })
  after(() => pool.close())

  /** Returns the messages of an import's items, or the import's error. */
  const importBomb = async (
    { fileName, make }: Bomb,
    max = { limits, wholeCpuMs: 1.5 * BOMB_CPU_MS },
  ): Promise<string> => {
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

  const checkPosts = async (bomb: Bomb): Promise<void> => {
    const outcome = await importBomb(bomb)
    assert.match(outcome, EXPECTED_OUTCOME)
    assert.doesNotMatch(outcome, /call stack|allocation|internal/i)
  }

  const checkIndexed = async ({ fileName, make }: Bomb): Promise<void> => {
    const file = { format: formatOf(extensionOf(fileName)), fileName }
    const analyzed = await analyzeFile(pool, make(), file, signal, limits)
    if ('reason' in analyzed) assert.match(analyzed.reason, /^(more than \d+ |it (needs|takes|crashed) )/)
    else assert.ok(analyzed.chunks.length < 1000)
  }

  const checkDocument = async ({ fileName, make }: Bomb): Promise<void> => {
    const bytes = make()
    const mediaType = await sniffMediaType(bytes.subarray(0, 65_536), { fileName })
    const options = { mediaType, vision: 'none', maxPages: 20_000, signal, limits } as const
    const reader = await openDocument(pool, async () => bytes, options)
    assert.ok(reader.pageCount <= 1000, `${reader.pageCount} pages`)
    const page = await reader.read(1)
    await reader.close()
    if (page.status === 'unread') assert.match(page.detail!, /^(The|There|A part|Reading|Opening) .+/)
  }

  /**
   * Imports a valid post. The first call makes a child load its code, so that the limits of later calls exclude the
   * loading time.
   */
  const importGoodPost = async (): Promise<void> => {
    const bytes = Buffer.from('# Good\n\nnews')
    const reader = await openPosts(pool, { name: 'good.md', format: 'markdown', bytes }, { signal })
    for await (const { read } of reader.read()) assert.ok('post' in read && read.post.title === 'Good')
    reader.close()
  }

  /** Reads a valid document. Like `importGoodPost`, the first call makes a child load its code. */
  const readGoodDocument = async (): Promise<void> => {
    const good = await buildTextPdf(1)
    const options = { mediaType: 'application/pdf', vision: 'none', maxPages: 1, signal } as const
    const reader = await openDocument(pool, async () => good, options)
    assert.equal((await reader.read(1)).status, 'read')
    await reader.close()
  }

  const cutPiece = (bytes: Buffer, max?: Limits) =>
    createCutter(pool, max).cut(
      () => Readable.from([bytes]),
      { from: 0, maxBytes: 10_000_000, maxSeconds: 600 },
      signal,
    )

  const checkRecording = async ({ make }: Bomb): Promise<void> => {
    try {
      const piece = await cutPiece(make(), limits)
      piece.release()
      assert.ok(piece.end - piece.start <= 601)
    } catch (error) {
      if (!(error instanceof Failure)) throw error
      assert.match(error.detail, /cannot be cut: it (is damaged|has no sound|takes|needs|exceeds|crashed)/)
    }
  }

  /** Cuts a valid recording. Like `importGoodPost`, the first call makes a child load its code. */
  const cutGoodRecording = async (): Promise<void> => {
    const piece = await cutPiece(createToneWav(2, []))
    piece.release()
    assert.ok(piece.isLast)
  }

  return {
    pool,
    checkRecording,
    cutGoodRecording,
    importBomb,
    checkPosts,
    checkIndexed,
    checkDocument,
    importGoodPost,
    readGoodDocument,
  }
}
