import assert from 'node:assert/strict'
import type { UploadFormat } from '../../sql/blog/transfer.ts'
import {
  appendToUpload,
  createUpload,
  parseExportedPost,
  readExportedPosts,
} from '../../sql/blog/transfer.ts'
import { uuidv7 } from '../../sql/ids.ts'
import { importPosts } from '../../tasks/blog/import.task.ts'
import type { ImportResult, OnConflict } from '../../tasks/blog/shapes.ts'
import type { Providers, TaskContext } from '../../tasks/context.ts'
import { parseSettings } from '../../tasks/platform/settings/settings.ts'
import { createChildPool } from '../../workers/children/pool.ts'
import { openPosts, type PostOptions } from '../../workers/providers/documents/posts.ts'
import type { TestDatabase } from '../database.ts'
import { stopAfterFile } from '../services.ts'
import { createZip } from '../zip.ts'

/** Runs imports in the test's own process. */

export interface ImportAttempt {
  readonly onConflict?: OnConflict
  readonly ownerId?: number | null
  readonly signal?: AbortSignal
  /** Number of the attempt that the database considers running; by default, that of this import. */
  readonly runningAttempt?: number
  readonly reading?: Partial<PostOptions>
}

export interface ImportedPosts {
  readonly result: ImportResult | null
  // biome-ignore lint/suspicious/noExplicitAny: a test looks for the code in it
  readonly error: any
  readonly progress: readonly string[]
  readonly uploadId: number
}

export function createImports({ db, query }: TestDatabase) {
  const children = createChildPool({ log: { warn: () => {} } as never })
  stopAfterFile(() => children.close())
  const upload = async (name: string, bytes: string | Uint8Array): Promise<number> => {
    const format: UploadFormat = name.endsWith('.zip') ? 'zip' : name.endsWith('.json') ? 'json' : 'markdown'
    const { id } = await db.one(createUpload(name, format))
    const buffer = Buffer.from(bytes)
    for (let at = 0, ordinal = 0; at < buffer.length; at += 100_000, ordinal++)
      await db.run(appendToUpload(id, ordinal, buffer.subarray(at, at + 100_000)))
    return id
  }

  const run = async (uploadId: number, how: ImportAttempt = {}): Promise<ImportedPosts> => {
    const job = { id: uuidv7(), attempt: 1, ownerId: how.ownerId ?? null, requestId: null }
    await query(
      `insert into job (id, name, queue, owner_id, mailbox, payload, status, max_tries, attempt, lease_id)
       values ($1, 'blog.import', 'blog', $2, 'blog', '{}', 'running', 3, $3, gen_random_uuid())`,
      [job.id, job.ownerId, how.runningAttempt ?? 1],
    )
    const progress: string[] = []
    const context = {
      job,
      db,
      settings: parseSettings({}),
      log: { info: () => {}, warn: () => {}, error: () => {} },
      signal: how.signal ?? new AbortController().signal,
      reportProgress: (label: string) => void progress.push(label),
      emit: () => {},
      providers: {
        readPosts: (name, format, bytes, signal) =>
          openPosts(children, { name, format, bytes }, { signal, ...how.reading }),
      } satisfies Partial<Providers>,
    } as unknown as TaskContext
    const [outcome] = await Promise.allSettled([
      importPosts.run(context, { uploadId, onConflict: how.onConflict ?? 'skip' }),
    ])
    return {
      result: outcome.status === 'fulfilled' ? outcome.value : null,
      error: outcome.status === 'rejected' ? outcome.reason : null,
      progress,
      uploadId,
    }
  }

  const send = async (
    name: string,
    bytes: string | Uint8Array,
    how: ImportAttempt = {},
  ): Promise<ImportedPosts> => run(await upload(name, bytes), how)

  /** Reads all posts of an export, in order. */
  // biome-ignore lint/suspicious/noExplicitAny: a test looks into what came
  const exported = async (): Promise<any[]> => {
    const posts = []
    for (let after = 0; ; ) {
      const lines = await query(readExportedPosts.text, [after, null])
      if (lines.length === 0) return posts
      const rows = lines.map((line) => parseExportedPost(String(Object.values(line)[0])))
      posts.push(...rows.map(({ json }) => JSON.parse(json)))
      after = rows.at(-1)!.id
    }
  }

  /** Imports one Markdown file into an empty blog. Returns the post, or the reason why there is none. */
  const one = async (path: string, text: string) => {
    await clear()
    const name = path.split('/').at(-1)!
    const { result, error } =
      path === name ? await send(name, text) : await send('posts.zip', createZip([[path, text]]))
    if (error !== null) throw error
    const [post] = await exported()
    return post ?? result!.errors[0]!.message
  }

  /** Imports a file, and compares the fields of its post. */
  const assertPost = async (path: string, text: string, expected: Readonly<Record<string, unknown>>) => {
    const post = await one(path, text)
    assert.equal(typeof post, 'object', String(post))
    const found = Object.fromEntries(Object.keys(expected).map((key) => [key, post[key]]))
    assert.deepEqual(found, expected)
  }

  const clear = () => query('delete from blog_post; delete from blog_tag')
  return { upload, run, send, exported, one, assertPost, clear }
}
