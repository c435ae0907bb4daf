import { createRequire } from 'node:module'
import type { Readable } from 'node:stream'
import type { Dicer } from '@fastify/busboy'
import { Failure, fail } from '../../sql/errors.ts'
import type { EdgeRequest } from '../http/server.ts'
import { buildUnknownFieldProblem, failInvalidField, failInvalidInput } from '../pipeline/request/input.ts'
import { FileChunks } from './upload-chunks.ts'
import {
  cleanFileName,
  type PartHeaders,
  parseDisposition,
  parseMediaType,
  parseParameters,
} from './upload-headers.ts'

const require = createRequire(import.meta.url)
// Loads the parser on the first upload, not at startup.
const loadBusboy = () => require('@fastify/busboy') as typeof import('@fastify/busboy')
const MAX_FIELDS = 100
const MAX_FIELD_BYTES = 64 * 1024
/** Maximum size in bytes of boundaries, part headers and text fields together. */
const MAX_OVERHEAD_BYTES = 1024 * 1024
const BINARY_MEDIA_TYPE = 'application/octet-stream'

export interface UploadedFile {
  /** Base name without control characters, at most 255 characters. Empty if the client gave none. */
  readonly fileName: string
  /** Media type that the client declared, in lower case and without parameters. */
  readonly mediaType: string
}

export interface UploadOptions {
  /** Maximum size of the file in bytes. */
  readonly maxBytes: number
  /** Names of the allowed text fields; undefined allows any. */
  readonly fields?: readonly string[]
  /**
   * Receives the file once it begins, which may be before all fields have arrived. Chunks may share memory. A chunk is
   * valid until the next one is requested, then its memory is freed. If the upload fails, the iteration throws, and
   * readMultipart() rejects once this promise has settled.
   */
  readonly receiveFile: (info: UploadedFile, chunks: AsyncIterable<Uint8Array>) => Promise<void>
}

/**
 * Reads a multipart body: collects the text fields, and streams the one file in the field `file` at its reader's pace.
 * Rethrows errors of `options.receiveFile`.
 * @throws fail('request.media_type' | 'request.malformed' | 'request.too_large' | 'request.incomplete').
 * @throws fail('request.invalid') when an unknown field begins, so that a misspelled one is not ignored.
 */
export async function readMultipart(
  request: EdgeRequest,
  options: UploadOptions,
): Promise<{ fields: ReadonlyMap<string, readonly string[]>; hadFile: boolean }> {
  const form = new MultipartParser(parseBoundary(request.header('content-type')), options)
  const limit = options.maxBytes
  try {
    await request.body.streamTo((chunk) => form.feed(chunk), limit + MAX_OVERHEAD_BYTES)
    await form.end()
  } catch (error) {
    const large = error instanceof Failure && error.code === 'request.too_large'
    form.fail(large ? fail('request.too_large', { limit }) : error)
  }
  await form.fileDone
  if (form.failure !== undefined) throw form.failure.error
  return { fields: form.fields, hadFile: form.hadFile }
}

/**
 * Parses one form. Uses Dicer, busboy's part splitter, because busboy itself skips parts with truncated headers. Parts
 * are never paused, because a paused part that ends exactly at the end of a chunk can block the splitter forever.
 * Instead, feed() waits for the file's reader between two chunks.
 */
class MultipartParser {
  /** The values of each field, in order. */
  readonly fields = new Map<string, string[]>()
  hadFile = false
  /** The first failure. Later ones are ignored. */
  failure: { readonly error: unknown } | undefined = undefined
  /** Resolves when `options.receiveFile` has finished, and never rejects. */
  fileDone: Promise<void> = Promise.resolve()
  private readonly options: UploadOptions
  private readonly dicer: Dicer
  private fieldCount = 0
  private file: FileChunks | undefined = undefined
  /** True while the headers of the last part are incomplete. */
  private inHeaders = false
  /**
   * Number of parts that have not ended. Counted here, because the splitter misses parts that end exactly at the end of
   * a chunk.
   */
  private openParts = 0
  private sawLastBoundary = false
  private partCount = 0
  /** Settles the pending feed() or end(), with the failure if there is one. */
  private release: (() => void) | undefined = undefined

  constructor(boundary: string, options: UploadOptions) {
    this.options = options
    const { Dicer } = loadBusboy()
    this.dicer = new Dicer({ boundary })
    this.dicer.on('part', (part: Readable) => this.onPart(part))
    this.dicer.on('finish', () => this.onFinish())
    this.dicer.on('error', () => this.fail(createMalformedError('the form ends before its last boundary')))
  }

  /** Splits a chunk. Resolves when the file's reader has processed it. */
  async feed(chunk: Uint8Array): Promise<void> {
    // Ignores data after the last boundary (RFC 2046, section 5.1.1).
    if (this.isComplete) return
    const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength)
    const [wasOpen, partsBefore] = [this.file?.isOpen === true, this.partCount]
    await this.waitFor(() => this.dicer.write(bytes, () => this.release?.()))
    const { file } = this
    if (file?.isBusy === true) await this.waitFor(() => file.onDrained(() => this.release?.()))
    // No other part began in the chunk. So the whole chunk belongs to the file, and the file's reader has processed it.
    if (wasOpen && file?.isOpen === true && this.partCount === partsBefore) freeMemory(chunk)
  }

  /** Resolves when every part has ended. */
  end(): Promise<void> {
    return this.waitFor(() => {
      if (this.isComplete) this.release?.()
      else this.dicer.end()
    })
  }

  fail(error: unknown): void {
    if (this.failure !== undefined) return
    this.failure = { error }
    this.file?.fail(error)
    this.release?.()
  }

  private waitFor(start: () => void): Promise<void> {
    return new Promise((resolve, reject) => {
      this.release = () => {
        this.release = undefined
        if (this.failure === undefined) resolve()
        else reject(this.failure.error)
      }
      if (this.failure === undefined) start()
      else this.release()
    })
  }

  private onPart(part: Readable): void {
    this.partCount++
    // The splitter also emits the error of a truncated part on the part. Without a listener, the process would exit.
    part.on('error', () => {})
    this.checkHeaders()
    this.inHeaders = true
    part.on('header', (headers: PartHeaders) => {
      this.inHeaders = false
      this.openParts++
      this.readPart(part, headers)
      part.on('end', () => {
        this.openParts--
        this.releaseAtEnd()
      })
    })
  }

  private onFinish(): void {
    this.checkHeaders()
    this.sawLastBoundary = true
    this.releaseAtEnd()
  }

  /** Settles the pending call of a complete form. The splitter may never call back for the form's last chunk. */
  private releaseAtEnd(): void {
    if (this.isComplete) this.release?.()
  }

  private get isComplete(): boolean {
    return this.sawLastBoundary && this.openParts === 0
  }

  private checkHeaders(): void {
    if (this.inHeaders) this.fail(createMalformedError('a part of the form ends within its headers'))
  }

  private readPart(part: Readable, headers: PartHeaders): void {
    const { name, fileName } = parseDisposition(headers)
    const mediaType = parseMediaType(headers)
    const isText = fileName === undefined && mediaType !== BINARY_MEDIA_TYPE
    if (name === undefined) this.skip(part, createMalformedError('a part of the form has no name'))
    else if (isText && this.acceptsText(name)) this.readField(name, part)
    else if (isText || name !== 'file') this.skip(part, this.unexpectedPart(name))
    else this.readFile(part, { fileName: cleanFileName(fileName), mediaType: mediaType ?? BINARY_MEDIA_TYPE })
  }

  private acceptsText(name: string): boolean {
    const { fields } = this.options
    // Accepts text in the field `file`, so that the error says that the file is missing.
    return fields === undefined || name === 'file' || fields.includes(name)
  }

  private unexpectedPart(name: string): Failure {
    const { fields = [] } = this.options
    if (fields.includes(name))
      return failInvalidField('body', name, 'must be text, not a file', 'invalid_type')
    return failInvalidInput([buildUnknownFieldProblem(name, ['file', ...fields])])
  }

  private skip(part: Readable, failure: Failure): void {
    this.fail(failure)
    part.resume()
  }

  private readField(name: string, part: Readable): void {
    if (++this.fieldCount > MAX_FIELDS)
      this.fail(createMalformedError(`the form has more than ${MAX_FIELDS} fields`))
    const chunks: Buffer[] = []
    let size = 0
    part.on('data', (chunk: Buffer) => {
      size += chunk.length
      if (size > MAX_FIELD_BYTES) this.fail(fail('request.too_large', { limit: MAX_FIELD_BYTES }))
      else chunks.push(chunk)
    })
    part.on('end', () => {
      this.fields.set(name, [...(this.fields.get(name) ?? []), Buffer.concat(chunks).toString()])
    })
  }

  private readFile(part: Readable, info: UploadedFile): void {
    if (this.hadFile) this.fail(createMalformedError('the form has more than one file'))
    this.hadFile = true
    const limit = this.options.maxBytes
    const file = new FileChunks()
    let size = 0
    part.on('data', (chunk: Buffer) => {
      size += chunk.length
      if (size > limit) this.fail(fail('request.too_large', { limit }))
      else file.push(chunk)
    })
    part.on('end', () => file.end())
    if (this.failure !== undefined) return
    this.file = file
    this.fileDone = this.runFile(file, info)
  }

  private async runFile(file: FileChunks, info: UploadedFile): Promise<void> {
    try {
      await this.options.receiveFile(info, file)
    } catch (error) {
      this.fail(error)
    }
    file.stop()
  }
}

/** Frees memory immediately. The garbage collector would first let tens of megabytes of an upload accumulate. */
function freeMemory({ buffer, byteLength }: Uint8Array): void {
  if (buffer instanceof ArrayBuffer && buffer.byteLength === byteLength) buffer.transfer(0)
}

function createMalformedError(reason: string): Failure {
  return fail('request.malformed', { reason })
}

function parseBoundary(contentType: string): string {
  if (!/^multipart\/form-data\s*(;|$)/i.test(contentType)) {
    throw fail('request.media_type', { expected: 'multipart/form-data' })
  }
  const found = parseParameters(contentType).get('boundary')
  // The splitter throws on an empty boundary and on one over 250 bytes. RFC 2046 allows at most 70.
  if (!found || found.length > 70)
    throw createMalformedError('the boundary of the form is missing or too long')
  return found
}
