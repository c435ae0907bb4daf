import { PARTS } from '../../sql/accounts/export.ts'
import type { Part, Rows } from '../../sql/accounts/export-rows.ts'
import {
  exportById,
  exportedAccount,
  exportedContents,
  insertExport,
  isStored,
} from '../../sql/accounts/exports.ts'
import { fail } from '../../sql/errors.ts'
import { type ArchiveFile, createArchive } from '../archive.ts'
import type { TaskContext } from '../context.ts'
import type { UploadedBlob } from '../documents/blobs.ts'
import { documentFileName } from '../documents/file-name.ts'
import { discardUnused, findLostTwin, sealUpload } from '../documents/store.ts'
import type { Exported } from './export.ts'

/** Runs `accounts.export`. */
export async function run(
  ctx: TaskContext,
  { account_id: id }: { readonly account_id: number },
): Promise<Exported> {
  const { db, job, blobs, log } = ctx
  // An earlier attempt stored the export but died before its result was recorded.
  const existing = await db.maybeOne(exportById(job.id))
  if (existing !== null) return { export_id: job.id, byte_size: existing.byte_size }
  const blob = await store(ctx, id)
  try {
    const lost = await findLostTwin(db, blobs, blob)
    await ctx.fenced(async (tx) => {
      await sealUpload(tx, blob, lost)
      await tx.run(insertExport({ id: job.id, accountId: id, sha256: blob.sha256, byteSize: blob.byteSize }))
    })
  } finally {
    await discardUnused(blobs, log, blob)
  }
  return { export_id: job.id, byte_size: blob.byteSize }
}

async function store(ctx: TaskContext, id: number): Promise<UploadedBlob> {
  try {
    return await ctx.blobs.store(createArchive(exportFiles(ctx, id)))
  } catch (error) {
    // Report the abort itself, because an aborted store operation would look like a failure of the store.
    ctx.signal.throwIfAborted()
    throw error
  }
}

/** Yields the files of an export. Each file is read while it is packed. */
async function* exportFiles(ctx: TaskContext, id: number): AsyncGenerator<ArchiveFile> {
  const account = await ctx.db.maybeOne(exportedAccount(id))
  if (account === null) throw fail('account.missing')
  const modifiedAt = new Date()
  yield { name: 'account.json', content: `${account.json}\n`, modifiedAt: modifiedAt }
  const total = PARTS.length + account.documents
  for (const [n, part] of PARTS.entries()) {
    ctx.progress(`Exporting ${part.file}`, n, total)
    yield { name: part.file, content: jsonLines(ctx, part.rows, String(id)), modifiedAt: modifiedAt }
    for (const { file, rows } of part.below ?? [])
      yield { name: file, content: nestedJsonLines(ctx, part, rows, String(id)), modifiedAt: modifiedAt }
  }
  yield* documentFiles(ctx, id, total)
  ctx.progress('Exported', total, total)
}

/** Yields batches of rows, in key order. */
async function* batches({ db, signal }: TaskContext, rows: Rows, of: string) {
  for (let key = rows.start; ; ) {
    signal.throwIfAborted()
    const batch = await db.any(rows.after(of, key))
    if (batch.length === 0) return
    yield batch
    key = batch.at(-1)!.key
  }
}

/** Yields rows as newline-delimited JSON (https://github.com/ndjson/ndjson-spec). */
async function* jsonLines(ctx: TaskContext, rows: Rows, of: string): AsyncGenerator<Uint8Array> {
  for await (const batch of batches(ctx, rows, of))
    yield Buffer.from(batch.map(({ json }) => `${json}\n`).join(''))
}

async function* nestedJsonLines(
  ctx: TaskContext,
  part: Part,
  rows: Rows,
  of: string,
): AsyncGenerator<Uint8Array> {
  for await (const batch of batches(ctx, part.rows, of))
    for (const { key } of batch) yield* jsonLines(ctx, rows, key)
}

const CONTENT_BATCH = 100

/** Yields the stored bytes of documents, then a list of the documents whose bytes are missing from the store. */
async function* documentFiles(ctx: TaskContext, id: number, total: number): AsyncGenerator<ArchiveFile> {
  const missing: number[] = []
  let [after, packed] = [0, 0]
  for (;;) {
    ctx.signal.throwIfAborted()
    const batch = await ctx.db.any(exportedContents(id, after, CONTENT_BATCH))
    if (batch.length === 0) break
    for (const document of batch) {
      after = document.id
      ctx.progress('Exporting documents', Math.min(PARTS.length + packed++, total), total)
      if (!isStored(document) || !(await ctx.blobs.exists(document, document.byte_size))) {
        missing.push(document.id)
        continue
      }
      yield {
        name: `documents/${document.id}/${documentFileName(fileName(document.title), document.media_type)}`,
        content: copyPieces(ctx, ctx.blobs.read(document, 0, document.byte_size)),
        modifiedAt: new Date(),
        // Formats other than text are already compressed.
        isCompressed: !document.media_type.startsWith('text/'),
      }
    }
  }
  if (missing.length > 0)
    yield { name: 'missing-documents.json', content: `${JSON.stringify(missing)}\n`, modifiedAt: new Date() }
}

/** Copies each piece, because a store reuses its buffer for the next piece while packing still holds several. */
async function* copyPieces(
  { signal }: TaskContext,
  pieces: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  for await (const piece of pieces) {
    signal.throwIfAborted()
    yield Buffer.from(piece)
  }
}

const MAX_CHARACTERS = 100

/**
 * Converts a title to a file name that is valid on any system, without path separators, control characters or the
 * characters that Windows forbids.
 */
export function fileName(title: string): string {
  const plain = title
    .toWellFormed()
    .normalize('NFC')
    .replace(/[\p{Cc}\p{Cf}<>:"/\\|?*]/gu, '_')
  const short = [...plain].slice(0, MAX_CHARACTERS).join('')
  return short.replace(/^[. ]+|[. ]+$/g, '_') || '_'
}
