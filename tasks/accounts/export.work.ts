import { EXPORT_PARTS, type ExportPart } from '../../sql/accounts/export.ts'
import type { RowReader } from '../../sql/accounts/export-rows.ts'
import {
  findExportById,
  insertExport,
  isStored,
  readExportedAccount,
  readExportedContents,
} from '../../sql/accounts/exports.ts'
import { fail } from '../../sql/errors.ts'
import type { TaskContext } from '../context.ts'
import type { UploadedBlob } from '../documents/blobs/blobs.ts'
import { buildDocumentFileName } from '../documents/file-name.ts'
import { discardUnusedUpload, findLostDuplicate, sealUpload } from '../documents/store.ts'
import { type ArchiveFile, createArchive } from '../formats/archive.ts'

interface ExportResult {
  readonly export_id: string
  readonly byte_size: number
}

/** Runs `accounts.export`. */
export async function run(
  ctx: TaskContext,
  { account_id: id }: { readonly account_id: number },
): Promise<ExportResult> {
  const { db, job, blobs, log } = ctx
  // An earlier attempt stored the export but died before its result was recorded.
  const existing = await db.maybeOne(findExportById(job.id))
  if (existing !== null) return { export_id: job.id, byte_size: existing.byte_size }
  const blob = await storeExport(ctx, id)
  try {
    const lost = await findLostDuplicate(db, blobs, blob)
    await ctx.runFenced(async (tx) => {
      await sealUpload(tx, blob, lost)
      await tx.run(insertExport({ id: job.id, accountId: id, sha256: blob.sha256, byteSize: blob.byteSize }))
    })
  } finally {
    await discardUnusedUpload(blobs, log, blob)
  }
  return { export_id: job.id, byte_size: blob.byteSize }
}

async function storeExport(ctx: TaskContext, id: number): Promise<UploadedBlob> {
  try {
    return await ctx.blobs.store(createArchive(generateExportFiles(ctx, id)))
  } catch (error) {
    // Report an abort as such, because an aborted store operation looks like a failure of the store.
    ctx.signal.throwIfAborted()
    throw error
  }
}

/** The parts of a task's context that an export reads with. */
type ExportContext = Pick<TaskContext, 'db' | 'blobs' | 'signal' | 'reportProgress'>

/** Yields the files of an export. Each file is read while it is packed. @throws fail('account.missing') */
export async function* generateExportFiles(ctx: ExportContext, id: number): AsyncGenerator<ArchiveFile> {
  const account = await ctx.db.maybeOne(readExportedAccount(id))
  if (account === null) throw fail('account.missing')
  const modifiedAt = new Date()
  yield { name: 'account.json', content: `${account.json}\n`, modifiedAt: modifiedAt }
  const total = EXPORT_PARTS.length + account.documents
  for (const [n, part] of EXPORT_PARTS.entries()) {
    ctx.reportProgress(`Exporting ${part.file}`, n, total)
    yield { name: part.file, content: generateJsonLines(ctx, part.rows, String(id)), modifiedAt: modifiedAt }
    for (const { file, rows } of part.childFiles)
      yield {
        name: file,
        content: generateNestedJsonLines(ctx, part, rows, String(id)),
        modifiedAt: modifiedAt,
      }
  }
  yield* generateDocumentFiles(ctx, id, total)
  ctx.reportProgress('Exported', total, total)
}

/** Yields batches of rows, in key order. */
async function* readBatches({ db, signal }: ExportContext, rows: RowReader, of: string) {
  for (let key = rows.start; ; ) {
    signal.throwIfAborted()
    const batch = await db.any(rows.readAfter(of, key))
    if (batch.length === 0) return
    yield batch
    key = batch.at(-1)!.key
  }
}

/** Yields rows as newline-delimited JSON (https://github.com/ndjson/ndjson-spec). */
async function* generateJsonLines(
  ctx: ExportContext,
  rows: RowReader,
  of: string,
): AsyncGenerator<Uint8Array> {
  for await (const batch of readBatches(ctx, rows, of))
    yield Buffer.from(batch.map(({ json }) => `${json}\n`).join(''))
}

async function* generateNestedJsonLines(
  ctx: ExportContext,
  part: ExportPart,
  rows: RowReader,
  of: string,
): AsyncGenerator<Uint8Array> {
  for await (const batch of readBatches(ctx, part.rows, of))
    for (const { key } of batch) yield* generateJsonLines(ctx, rows, key)
}

const DOCUMENTS_PER_BATCH = 100

/** Yields the stored bytes of documents, then a list of the documents whose bytes are missing from the store. */
async function* generateDocumentFiles(
  ctx: ExportContext,
  id: number,
  total: number,
): AsyncGenerator<ArchiveFile> {
  const missing: number[] = []
  let [after, packed] = [0, 0]
  for (;;) {
    ctx.signal.throwIfAborted()
    const batch = await ctx.db.any(readExportedContents(id, after, DOCUMENTS_PER_BATCH))
    if (batch.length === 0) break
    for (const document of batch) {
      after = document.id
      ctx.reportProgress('Exporting documents', Math.min(EXPORT_PARTS.length + packed++, total), total)
      if (!isStored(document) || !(await ctx.blobs.exists(document, document.byte_size))) {
        missing.push(document.id)
        continue
      }
      yield {
        name: `documents/${document.id}/${buildDocumentFileName(toFileName(document.title), document.media_type)}`,
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
  { signal }: ExportContext,
  pieces: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  for await (const piece of pieces) {
    signal.throwIfAborted()
    yield Buffer.from(piece)
  }
}

const MAX_NAME_CHARACTERS = 100

/**
 * Converts a title to a file name that is valid on any system, without path separators, control characters or the
 * characters that Windows forbids.
 */
export function toFileName(title: string): string {
  const plain = title
    .toWellFormed()
    .normalize('NFC')
    .replace(/[\p{Cc}\p{Cf}<>:"/\\|?*]/gu, '_')
  const short = [...plain].slice(0, MAX_NAME_CHARACTERS).join('')
  return short.replace(/^[. ]+|[. ]+$/g, '_') || '_'
}
