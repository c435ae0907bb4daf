import { createRequire } from 'node:module'
import type { Readable } from 'node:stream'
import type { Dicer } from '@fastify/busboy'
import { Failure, fail } from '../sql/errors.ts'
import type { EdgeRequest } from './http/server.ts'
import { invalid, refusal, unknownField } from './pipeline/input.ts'
import { FileChunks } from './uploads/chunks.ts'
import { cleanFileName, disposition, mediaTypeOf, type PartHeaders, parameters } from './uploads/headers.ts'

const require = createRequire(import.meta.url)
// Loaded on first use.
const busboy = () => require('@fastify/busboy') as typeof import('@fastify/busboy')
const MAX_FIELDS = 100
const MAX_FIELD_BYTES = 64 * 1024
/** Bytes that boundaries, part headers and text fields may add to those of the file. */
const MAX_OVERHEAD = 1024 * 1024
const ANY_BYTES = 'application/octet-stream'

export interface UploadedFile {
  /** A base name without control characters, at most 255 characters; '' when the client gave none. */
  readonly fileName: string
  /** As the client claims it: lower case, without parameters. */
  readonly mediaType: string
}

export interface UploadOptions {
  /** The exact limit for the bytes of the file. */
  readonly maxBytes: number
  /** The text fields that the form may have; any if unset. */
  readonly fields?: readonly string[]
  /**
   * Called when the file begins, so possibly before all fields are known. Chunks may share memory with each other. A
   * chunk is valid until the next one is requested, when its memory is freed. The iteration throws when the upload
   * fails, and the failure is reported after this has settled.
   */
  readonly file: (info: UploadedFile, chunks: AsyncIterable<Uint8Array>) => Promise<void>
}

/**
 * Reads a multipart body: text fields are collected, the one file in the field `file` is streamed at the pace of its
 * reader. Rethrows what `options.file` throws.
 * @throws fail('request.media_type' | 'request.malformed' | 'request.too_large' | 'request.incomplete'), and for a field that the
 *   form does not have fail('request.invalid'), as soon as it begins: what is misspelled would otherwise be ignored.
 */
export async function readMultipart(
  request: EdgeRequest,
  options: UploadOptions,
): Promise<{ fields: Map<string, string>; hadFile: boolean }> {
  const form = new Form(boundaryOf(request.header('content-type')), options)
  const limit = options.maxBytes
  try {
    await request.body.stream((chunk) => form.feed(chunk), limit + MAX_OVERHEAD)
    await form.end()
  } catch (error) {
    const large = error instanceof Failure && error.code === 'request.too_large'
    form.fail(large ? fail('request.too_large', { limit }) : error)
  }
  await form.fileSettled
  if (form.failure !== undefined) throw form.failure.error
  return { fields: form.fields, hadFile: form.hadFile }
}

/**
 * One form being read. Built on busboy's part splitter rather than on busboy itself, which skips parts that are cut
 * short in their headers. Parts flow without pause, since a paused part that ends with a chunk can keep the splitter
 * waiting forever; feed() keeps the pace instead, between two chunks.
 */
class Form {
  readonly fields = new Map<string, string>()
  hadFile = false
  /** The first thing that went wrong; its consequences are ignored. */
  failure: { readonly error: unknown } | undefined = undefined
  /** Never rejects. */
  fileSettled: Promise<void> = Promise.resolve()
  private readonly options: UploadOptions
  private readonly dicer: Dicer
  private fieldCount = 0
  private file: FileChunks | undefined = undefined
  /** The headers of the last part have begun, but not ended. */
  private inHeaders = false
  /** Parts that have not ended. The splitter's own count misses those that end where a chunk ends. */
  private openParts = 0
  private lastSeen = false
  private partCount = 0
  /** Ends the pending feed() or end(), with the failure if there is one. */
  private release: (() => void) | undefined = undefined

  constructor(boundary: string, options: UploadOptions) {
    this.options = options
    const { Dicer } = busboy()
    this.dicer = new Dicer({ boundary })
    this.dicer.on('part', (part: Readable) => this.begin(part))
    this.dicer.on('finish', () => this.finish())
    this.dicer.on('error', () => this.fail(malformed('the form ends before its last boundary')))
  }

  /** Resolves when the reader of the file is done with everything in the chunk. */
  async feed(chunk: Uint8Array): Promise<void> {
    // What follows the last boundary is ignored (RFC 2046 5.1.1).
    if (this.isWhole) return
    const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength)
    const [wasOpen, partsBefore] = [this.file?.isOpen === true, this.partCount]
    await this.waiting(() => this.dicer.write(bytes, () => this.release?.()))
    const { file } = this
    if (file?.isBusy === true) await this.waiting(() => file.onTaken(() => this.release?.()))
    // No other part began in the chunk: all of it belongs to the file, whose reader has asked for more.
    if (wasOpen && file?.isOpen === true && this.partCount === partsBefore) freeMemory(chunk)
  }

  /** Resolves when every part has ended. */
  end(): Promise<void> {
    return this.waiting(() => {
      if (this.isWhole) this.release?.()
      else this.dicer.end()
    })
  }

  fail(error: unknown): void {
    if (this.failure !== undefined) return
    this.failure = { error }
    this.file?.fail(error)
    this.release?.()
  }

  private waiting(start: () => void): Promise<void> {
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

  private begin(part: Readable): void {
    this.partCount++
    // The splitter also emits the error of a truncated part on the part; without a listener that ends the process.
    part.on('error', () => {})
    this.checkHeaders()
    this.inHeaders = true
    part.on('header', (headers: PartHeaders) => {
      this.inHeaders = false
      this.openParts++
      this.open(part, headers)
      part.on('end', () => {
        this.openParts--
        this.releaseAtEnd()
      })
    })
  }

  private finish(): void {
    this.checkHeaders()
    this.lastSeen = true
    this.releaseAtEnd()
  }

  /** Ends a pending feed() too: the splitter may never call back for the chunk in which it finished. */
  private releaseAtEnd(): void {
    if (this.isWhole) this.release?.()
  }

  private get isWhole(): boolean {
    return this.lastSeen && this.openParts === 0
  }

  private checkHeaders(): void {
    if (this.inHeaders) this.fail(malformed('a part of the form ends within its headers'))
  }

  private open(part: Readable, headers: PartHeaders): void {
    const { name, fileName } = disposition(headers)
    const mediaType = mediaTypeOf(headers)
    const isText = fileName === undefined && mediaType !== ANY_BYTES
    if (name === undefined) this.skip(part, malformed('a part of the form has no name'))
    else if (isText && this.takes(name)) this.readField(name, part)
    else if (isText || name !== 'file') this.skip(part, this.unexpected(name))
    else this.readFile(part, { fileName: cleanFileName(fileName), mediaType: mediaType ?? ANY_BYTES })
  }

  private takes(name: string): boolean {
    const { fields } = this.options
    // A text in place of the file: what is missing then is the file.
    return fields === undefined || name === 'file' || fields.includes(name)
  }

  private unexpected(name: string): Failure {
    const { fields = [] } = this.options
    if (fields.includes(name)) return invalid('body', name, 'must be text, not a file', 'invalid_type')
    return refusal([unknownField(name, ['file', ...fields])])
  }

  private skip(part: Readable, failure: Failure): void {
    this.fail(failure)
    part.resume()
  }

  private readField(name: string, part: Readable): void {
    if (++this.fieldCount > MAX_FIELDS) this.fail(malformed(`the form has more than ${MAX_FIELDS} fields`))
    const chunks: Buffer[] = []
    let size = 0
    part.on('data', (chunk: Buffer) => {
      size += chunk.length
      if (size > MAX_FIELD_BYTES) this.fail(fail('request.too_large', { limit: MAX_FIELD_BYTES }))
      else chunks.push(chunk)
    })
    part.on('end', () => this.fields.set(name, Buffer.concat(chunks).toString()))
  }

  private readFile(part: Readable, info: UploadedFile): void {
    if (this.hadFile) this.fail(malformed('the form has more than one file'))
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
    this.fileSettled = this.runFile(file, info)
  }

  private async runFile(file: FileChunks, info: UploadedFile): Promise<void> {
    try {
      await this.options.file(info, file)
    } catch (error) {
      this.fail(error)
    }
    file.stop()
  }
}

/** Frees unneeded memory at once: the garbage collector would let tens of megabytes of an upload pile up first. */
function freeMemory({ buffer, byteLength }: Uint8Array): void {
  if (buffer instanceof ArrayBuffer && buffer.byteLength === byteLength) buffer.transfer(0)
}

function malformed(reason: string): Failure {
  return fail('request.malformed', { reason })
}

function boundaryOf(contentType: string): string {
  if (!/^multipart\/form-data\s*(;|$)/i.test(contentType)) {
    throw fail('request.media_type', { expected: 'multipart/form-data' })
  }
  const found = parameters(contentType).get('boundary')
  // The splitter throws on an empty boundary or one of more than 250 bytes; RFC 2046 allows 70.
  if (!found || found.length > 70) throw malformed('the boundary of the form is missing or too long')
  return found
}
