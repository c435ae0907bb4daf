import type { z } from 'zod'
import { fail } from '../../sql/errors.ts'
import type { UploadedBlob } from '../../tasks/documents/blobs/blobs.ts'
import { sniffMediaType } from '../../tasks/documents/media.ts'
import { discardUnusedUpload } from '../../tasks/documents/store.ts'
import type { EdgeRequest } from '../http/server.ts'
import type { Edge } from '../pipeline/context.ts'
import { parsePart } from '../pipeline/request/input.ts'
import { readMultipart, type UploadedFile } from './uploads.ts'

/** An uploaded file that is not yet part of a document, with its form fields. */
export interface StoredUpload<F> {
  readonly blob: UploadedBlob
  readonly file: UploadedFile
  readonly fields: F
  /** Media type sniffed from the bytes. */
  readonly mediaType: string
}

export interface UploadRules<F> {
  readonly fields: F
  /** Names of the fields that a form may repeat, whose values are a list. If another field repeats, its last value counts. */
  readonly repeatable?: readonly string[]
  readonly maxBytes: number
}

/**
 * Streams the file of a form into the blob store. Discards the bytes if the upload is rejected. Treats an empty field
 * as absent.
 * @throws fail('document.file_required' | 'document.empty' | 'document.store_failed') and the errors of
 * `readMultipart`.
 */
export async function storeUpload<F extends z.ZodObject>(
  edge: Edge,
  request: EdgeRequest,
  { fields: schema, repeatable = [], maxBytes }: UploadRules<F>,
): Promise<StoredUpload<z.output<F>>> {
  let blob: UploadedBlob | null = null
  let file: UploadedFile = { fileName: '', mediaType: '' }
  try {
    const { fields, hadFile } = await readMultipart(request, {
      maxBytes,
      fields: Object.keys(schema.shape),
      receiveFile: async (info, chunks) => {
        file = info
        blob = await edge.blobs.store(chunks)
      },
    })
    if (!hadFile || blob === null) {
      const problems = [{ loc: ['body', 'file'], msg: 'is required', type: 'invalid_type' }]
      throw fail('document.file_required', {}, { problems })
    }
    const stored: UploadedBlob = blob
    if (stored.byteSize === 0) throw fail('document.empty')
    const filled = Object.fromEntries(
      [...fields].flatMap(([name, values]) => {
        const given = repeatable.includes(name) ? values.filter((value) => value !== '') : values.at(-1)!
        return given.length === 0 ? [] : [[name, given]]
      }),
    )
    const given = parsePart(schema, 'body', filled) as z.output<F>
    return { blob: stored, file, fields: given, mediaType: await sniffMediaType(stored.head, file) }
  } catch (error) {
    if (blob !== null) await discardUnusedUpload(edge.blobs, edge.log, blob)
    throw error
  }
}
