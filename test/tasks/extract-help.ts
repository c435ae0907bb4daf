import assert from 'node:assert/strict'
import { appendChunk, createBlob, sealBlob } from '../../sql/documents/blobs.ts'
import { insertDocument } from '../../sql/documents/documents.ts'
import { Failure } from '../../sql/errors.ts'
import { uuidv7 } from '../../sql/ids.ts'
import type { OpenPagesOptions, PageReader, PageResult, TaskContext } from '../../tasks/context.ts'
import { createBlobs } from '../../tasks/documents/blobs/blobs.ts'
import { extractDocument } from '../../tasks/documents/extract.task.ts'
import type { SecretKeys } from '../../tasks/platform/keys.ts'
import { parseSettings } from '../../tasks/platform/settings/settings.ts'
import type { TestDatabase } from '../database.ts'
import { TEST_KEYS } from '../keys.ts'

/** Runs extractions in the test's own process, with a document reader that the test controls. */

export const createPage = (text: string): PageResult => ({
  status: 'read',
  method: 'text_layer',
  model: null,
  detail: null,
  text,
  image: null,
})
export const blank: PageResult = {
  ...createPage(''),
  status: 'unread',
  method: 'none',
  detail: 'Nothing to be seen',
}

export const assertFailure = (error: unknown, code: string): void => {
  assert.ok(error instanceof Failure, String(error))
  assert.equal(error.code, code)
}

export interface Attempt {
  readonly jobId?: string
  readonly attempt?: number
  readonly force?: boolean
  /** Reads a page. */
  readonly read?: (number: number) => PageResult | Promise<PageResult>
  readonly pageCount?: number
  readonly unpackedBytes?: number
  /** CPU time in ms after this many pages; 0 by default. */
  readonly cpuMs?: (pages: number) => number
  readonly settings?: Readonly<Record<string, string>>
  /** Number of pages that are read in parallel; 1 by default. */
  readonly inHand?: number
  /** True if a page takes only milliseconds; false by default. */
  readonly isFast?: boolean
  /** The encoding of the text file that the document is; null by default. */
  readonly encoding?: string | null
  readonly open?: (options: OpenPagesOptions) => void
  /** The encoding that the request names. */
  readonly given?: string
  /** Seals the password of the request for the document. */
  readonly seal?: (documentId: number) => string
  /** Default: those of the test's process. */
  readonly keys?: SecretKeys
  /** Files attached to the document. If `text` is an error, storing that file throws it. */
  readonly attachments?: readonly (readonly [name: string, text: string | Error])[]
  readonly signal?: AbortSignal
  readonly warn?: (data: object, message: string) => void
}

export interface AttemptResult {
  readonly result: unknown
  readonly error: unknown
  readonly opened: number
  readonly closed: number
  readonly read: readonly number[]
  readonly progress: readonly [label: string, current: number | undefined, total: number | undefined][]
  readonly bytes: string
}

const INSERT_RUNNING_JOB = `
  insert into job (id, name, queue, mailbox, payload, status, attempt, max_tries, lease_id)
  values ($1::uuid, 'documents.extract', 'documents', 'of ' || $1::text, '{}', 'running', $2, 3, gen_random_uuid())
  on conflict (id) do update set attempt = excluded.attempt`

export function createExtractions({ db, query }: TestDatabase) {
  /** Adds a document whose bytes are these chunks; returns its id. */
  const add = async (...chunks: readonly string[]): Promise<number> => {
    const blob = (await db.one(createBlob())).blob_id
    for (const [i, chunk] of chunks.entries()) await db.run(appendChunk(blob, i, Buffer.from(chunk)))
    const size = Buffer.byteLength(chunks.join(''))
    const sha256 = Buffer.from(uuidv7().replaceAll('-', ''))
    await db.one(sealBlob(blob, sha256, size))
    return (
      await db.one(
        insertDocument({
          ownerId: null,
          title: 't',
          mediaType: 'text/plain',
          byteSize: size,
          sha256,
        }),
      )
    ).id
  }

  const run = async (documentId: number, how: Attempt = {}): Promise<AttemptResult> => {
    const ran = {
      opened: 0,
      closed: 0,
      read: [] as number[],
      progress: [] as [string, number | undefined, number | undefined][],
      bytes: '',
    }
    const reader: PageReader = {
      pageCount: how.pageCount ?? 3,
      unpackedBytes: how.unpackedBytes ?? 1000,
      get cpuMs() {
        return how.cpuMs?.(ran.read.length) ?? 0
      },
      isLocked: false,
      encoding: how.encoding ?? null,
      isFast: how.isFast ?? false,
      read: async (number) => {
        ran.read.push(number)
        return (how.read ?? ((n) => createPage(`Page ${n}`)))(number)
      },
      attachments: (how.attachments ?? []).map(([name]) => ({ name, mediaType: 'text/plain' })),
      readAttachment: async function* (index) {
        const [, text] = how.attachments![index]!
        if (text instanceof Error) throw text
        yield Buffer.from(text)
      },
      close: () => {
        ran.closed++
        return Promise.resolve()
      },
    }
    const id = how.jobId ?? uuidv7()
    const job = { id, name: 'documents.extract', attempt: how.attempt ?? 1, ownerId: null, requestId: null }
    await query(INSERT_RUNNING_JOB, [job.id, job.attempt])
    const context: TaskContext = {
      job,
      dependencies: async () => [],
      db,
      settings: parseSettings({ WORKER_THREADS: String(how.inHand ?? 1), ...how.settings }),
      blobs: createBlobs(db, parseSettings({})),
      keys: how.keys ?? TEST_KEYS,
      retryJobs: () => Promise.reject(new Error('Extraction retries nothing')),
      log: { info: () => {}, warn: how.warn ?? (() => {}), error: () => {} },
      signal: how.signal ?? new AbortController().signal,
      providers: {
        openPages: async (load, options) => {
          ran.bytes = Buffer.from(await load()).toString()
          ran.opened++
          how.open?.(options)
          return reader
        },
        readPosts: () => Promise.reject(new Error('Extraction reads no posts')),
        analyze: () => Promise.reject(new Error('Extraction indexes nothing')),
        retrieval: {} as never,
        embed: () => Promise.reject(new Error('Extraction embeds nothing')),
        placeWords: () => Promise.reject(new Error('Extraction places no words')),
        renderPage: () => Promise.reject(new Error('Extraction draws no pages')),
        comms: {} as never,
        postWebhook: () => Promise.reject(new Error('Extraction tells nobody')),
        payments: {} as never,
        openId: {} as never,
        chat: {} as never,
        speech: {} as never,
        transcription: {} as never,
        cutter: {} as never,
        readModelList: () => Promise.reject(new Error('Extraction reads no list')),
      },
      reportProgress: (label, current, total) => void ran.progress.push([label, current, total]),
      emit: () => {},
      runFenced: (work) => db.transaction(work),
    }
    const [outcome] = await Promise.allSettled([
      extractDocument.run(context, {
        documentId,
        force: how.force ?? false,
        ...(how.given !== undefined && { encoding: how.given }),
        ...(how.seal !== undefined && { sealedPassword: how.seal(documentId) }),
      }),
    ])
    return {
      ...ran,
      result: outcome.status === 'fulfilled' ? outcome.value : null,
      error: outcome.status === 'rejected' ? outcome.reason : null,
    }
  }

  const pages = async (documentId: number): Promise<string[]> => {
    const rows = await query(
      'select page_number, status, text, detail from document_page where document_id = $1 order by 1',
      [documentId],
    )
    return rows.map(
      (row) => `${row.page_number} ${row.status}: ${row.status === 'read' ? row.text : row.detail}`,
    )
  }

  return { add, run, pages }
}
