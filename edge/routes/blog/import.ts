import { createHash } from 'node:crypto'
import { z } from 'zod'
import {
  appendToUpload,
  claimUpload,
  createUpload,
  discardUpload,
  type UploadFormat,
} from '../../../sql/blog/transfer.ts'
import { fail } from '../../../sql/errors.ts'
import { importPosts } from '../../../tasks/blog/import.task.ts'
import { ImportResult, ON_CONFLICT } from '../../../tasks/blog/shapes.ts'
import { splitIntoParts } from '../../../tasks/documents/blobs/parts.ts'
import { enqueue } from '../../../tasks/task.ts'
import { readMultipart } from '../../files/uploads.ts'
import type { EdgeRequest } from '../../http/server.ts'
import type { Edge } from '../../pipeline/context.ts'
import { type ReceivedBody, route } from '../../pipeline/route.ts'

const ImportForm = z.strictObject({ file: z.string().meta({ format: 'binary' }) }).meta({ id: 'BlogImport' })

/** An uploaded file of posts, which the database stores for its job. */
interface StoredUpload extends ReceivedBody {
  readonly id: number
}

// Small network chunks are merged up to this size, so that a file takes only a few dozen rows.
const ROW_BYTES = 256 * 1024

const FORMATS: Readonly<Record<string, UploadFormat>> = {
  md: 'markdown',
  markdown: 'markdown',
  mdx: 'markdown',
  zip: 'zip',
  json: 'json',
  xml: 'xml',
}

export const importRoute = route({
  method: 'post',
  path: '/import',
  summary: 'Import posts',
  description: `Takes a Markdown file, a zip archive of such files, a JSON array, or an export of Ghost (JSON) or WordPress (XML). \
Front matter may be YAML, TOML or JSON, with the keys of Jekyll, Hugo, Astro, Eleventy, Zola, Hexo, Pelican and \
Ghost. \`on_conflict\` decides about posts whose slug exists; with \`fail\`, the first one aborts the whole import. \
A slug that follows from a path or a title gets a number if another post of the import has it. Each file that makes \
no post is counted as skipped or failed, and listed in \`errors\` (the first 10,000). A post that its author hid, or \
dated in the future, is not public. The import is one transaction.`,
  auth: 'editor',
  query: z.object({ on_conflict: z.enum(ON_CONFLICT).default('skip') }),
  body: ImportForm,
  bodyType: 'multipart',
  response: ImportResult.meta({ id: 'ImportResult' }),
  errors: [
    'import.file_required',
    'import.file_type',
    'import.encoding',
    'import.refused',
    'import.too_complex',
    'import.conflict',
    'import.bytes_missing',
  ],
  sideEffect: true,
  receive: ({ edge, request }) => receiveUpload(edge, request),
  job: async ({ query, caller, edge, tx, received, requestId }) => {
    const payload = { uploadId: received.id, onConflict: query.on_conflict }
    const ref = await enqueue(tx, importPosts, payload, {
      ownerId: caller.ownerId,
      requestId,
      settings: edge.settings,
    })
    await tx.run(claimUpload(received.id, ref.jobId))
    return ref
  },
})

/** Streams the file into the database. If the request is refused, deletes the stored part. */
async function receiveUpload(edge: Edge, request: EdgeRequest): Promise<StoredUpload> {
  let upload: { readonly id: number; readonly fingerprint: Uint8Array } | null = null
  const discard = async (): Promise<unknown> => upload && edge.db.run(discardUpload(upload.id))
  try {
    const { hadFile } = await readMultipart(request, {
      maxBytes: edge.settings.maxImportBytes,
      fields: [],
      receiveFile: async ({ fileName }, chunks) => {
        const format = FORMATS[/\.([a-z]+)$/i.exec(fileName)?.[1]?.toLowerCase() ?? '']
        if (format === undefined) throw fail('import.file_type')
        const { id } = await edge.db.one(createUpload(fileName, format))
        upload = { id, fingerprint: Buffer.alloc(0) }
        upload = {
          id,
          fingerprint: await storeFile(edge, id, fileName, format === 'zip' ? chunks : requireUtf8(chunks)),
        }
      },
    })
    if (!hadFile || upload === null) {
      const problems = [{ loc: ['body', 'file'], msg: 'is required', type: 'invalid_type' }]
      throw fail('import.file_required', {}, { problems })
    }
    return { ...(upload as Omit<StoredUpload, 'discard'>), discard }
  } catch (error) {
    await discard()
    throw error
  }
}

/** Stores the bytes as they arrive. Returns a digest of the file name and the bytes. */
async function storeFile(
  edge: Edge,
  id: number,
  fileName: string,
  chunks: AsyncIterable<Uint8Array>,
): Promise<Uint8Array> {
  const hash = createHash('sha256').update(fileName).update('\0')
  let ordinal = 0
  for await (const { bytes } of splitIntoParts(chunks, ROW_BYTES)) {
    hash.update(bytes)
    if (bytes.length > 0) await edge.db.run(appendToUpload(id, ordinal++, bytes))
  }
  return hash.digest()
}

/** Passes UTF-8 text through. @throws fail('import.encoding') at the first invalid byte. */
async function* requireUtf8(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const decoder = new TextDecoder('utf-8', { fatal: true })
  const check = (chunk?: Uint8Array): void => {
    try {
      decoder.decode(chunk, { stream: chunk !== undefined })
    } catch (error) {
      throw fail('import.encoding', {}, { cause: error })
    }
  }
  for await (const chunk of chunks) {
    check(chunk)
    yield chunk
  }
  check()
}
