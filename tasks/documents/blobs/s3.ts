import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  HeadObjectCommand,
  PutObjectCommand,
  S3Client,
  type S3ServiceException,
  UploadPartCommand,
} from '@aws-sdk/client-s3'
import { fail } from '../../../sql/errors.ts'
import type { Location } from './location.ts'
import { inParts, type Part } from './parts.ts'
import type { S3Settings } from './settings.ts'
import type { BlobStore } from './store.ts'

// Limits of S3: no part but the last below 5 MiB, and no more than 10,000 parts.
const MIN_PART = 5 * 1024 * 1024
const MAX_PARTS = 10_000
// A download holds its connection for as long as its client takes: slow clients would soon hold the default of 50.
const MAX_SOCKETS = 1000
const CONNECT_MS = 5_000
const SILENCE_MS = 60_000
// How often a download may break off without a byte in between.
const MAX_BREAKS = 3

/** Bytes as objects of a bucket: large ones in parts, two of which are in memory at once. */
export function createS3Store(
  { bucket, prefix }: Location & { kind: 's3' },
  settings: S3Settings,
  maxBytes: number,
): BlobStore {
  const client = connect(settings)
  const nameOf = (key: string) => ({ Bucket: bucket, Key: `${prefix}${key}` })
  const partBytes = Math.max(MIN_PART, Math.ceil(maxBytes / MAX_PARTS))
  return {
    write: ({ key }, chunks, begun) => writeObject(client, nameOf(key), inParts(chunks, partBytes), begun),
    read: ({ key }, from, length) => readObject(client, nameOf(key), from, length),
    exists: async ({ key }, byteSize) => {
      const head = await client.send(new HeadObjectCommand(nameOf(key))).catch(nullWhenMissing)
      return head?.ContentLength === byteSize
    },
    remove: async ({ key, upload_id }) => {
      if (upload_id !== null)
        await client
          .send(new AbortMultipartUploadCommand({ ...nameOf(key), UploadId: upload_id }))
          .catch(nullWhenMissing)
      await client.send(new DeleteObjectCommand(nameOf(key))).catch(nullWhenMissing)
    },
    close: () => client.destroy(),
  }
}

function connect({ endpointUrl, region, credentials }: S3Settings): S3Client {
  return new S3Client({
    // Servers other than Amazon's have no regions, but the signature needs one.
    region: region ?? 'us-east-1',
    // Without a host name for each bucket, as most other servers are set up.
    ...(endpointUrl === undefined ? {} : { endpoint: endpointUrl, forcePathStyle: true }),
    // Without credentials: the machine's role, as Amazon's client finds it.
    ...(credentials === undefined ? {} : { credentials }),
    // Not all other servers support the checksums that Amazon's client adds by default.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    requestHandler: {
      connectionTimeout: CONNECT_MS,
      socketTimeout: SILENCE_MS,
      httpAgent: { maxSockets: MAX_SOCKETS },
      httpsAgent: { maxSockets: MAX_SOCKETS },
    },
  })
}

async function writeObject(
  client: S3Client,
  name: ObjectName,
  parts: AsyncIterable<Part>,
  begun: (uploadId: string) => Promise<void>,
): Promise<void> {
  let upload: MultipartUpload | null = null
  try {
    for await (const { bytes, isLast } of parts) {
      if (upload === null && isLast)
        return void (await client.send(new PutObjectCommand({ ...name, Body: bytes })))
      upload ??= await MultipartUpload.begin(client, name, begun)
      await upload.add(bytes)
    }
    await upload?.complete()
  } finally {
    await upload?.settled()
  }
}

interface ObjectName {
  readonly Bucket: string
  readonly Key: string
}

/** Sends one part while the next is gathered. */
class MultipartUpload {
  private readonly client: S3Client
  private readonly name: ObjectName & { readonly UploadId: string }
  private readonly parts: { PartNumber: number; ETag: string | undefined }[] = []
  private sending: Promise<void> = Promise.resolve()

  private constructor(client: S3Client, name: ObjectName & { readonly UploadId: string }) {
    this.client = client
    this.name = name
  }

  static async begin(
    client: S3Client,
    name: ObjectName,
    begun: (uploadId: string) => Promise<void>,
  ): Promise<MultipartUpload> {
    const { UploadId } = await client.send(new CreateMultipartUploadCommand(name))
    if (UploadId === undefined) throw new Error('The object store returned no upload id')
    await begun(UploadId)
    return new MultipartUpload(client, { ...name, UploadId })
  }

  /** Resolves when the previous part has arrived, so that its buffer may be filled again. */
  async add(bytes: Uint8Array): Promise<void> {
    await this.sending
    this.sending = this.send(this.parts.length + 1, bytes)
    // Thrown by the next call.
    this.sending.catch(() => {})
    this.parts.push({ PartNumber: this.parts.length + 1, ETag: undefined })
  }

  async complete(): Promise<void> {
    await this.sending
    await this.client.send(
      new CompleteMultipartUploadCommand({ ...this.name, MultipartUpload: { Parts: this.parts } }),
    )
  }

  /** Waits for the part under way: one that arrives after the upload has ended may stay behind for good. */
  async settled(): Promise<void> {
    await this.sending.catch(() => {})
  }

  private async send(PartNumber: number, Body: Uint8Array): Promise<void> {
    const { ETag } = await this.client.send(new UploadPartCommand({ ...this.name, PartNumber, Body }))
    this.parts[PartNumber - 1]!.ETag = ETag
  }
}

/** Resumes where it broke off: object stores cut connections that a slow client keeps waiting. */
async function* readObject(
  client: S3Client,
  name: ObjectName,
  from: number,
  length: number,
): AsyncGenerator<Uint8Array> {
  const end = from + length
  for (let at = from, breaks = 0; at < end; breaks++) {
    let problem: unknown = new Error('The object store ended its answer early')
    const pieces = await getRange(client, name, at, end)
    try {
      for await (const given of pieces) {
        const piece = given.subarray(0, end - at)
        at += piece.length
        breaks = 0
        yield piece
        if (at === end) return
      }
    } catch (error) {
      problem = error
    }
    if (at < end && breaks >= MAX_BREAKS) throw problem
  }
}

async function getRange(
  client: S3Client,
  name: ObjectName,
  from: number,
  end: number,
): Promise<AsyncIterable<Uint8Array>> {
  const range = { ...name, Range: `bytes=${from}-${end - 1}` }
  const found = await client.send(new GetObjectCommand(range)).catch(nullWhenMissing)
  if (found === null || (found.ContentLength ?? 0) < end - from) throw fail('document.bytes_missing')
  // Some servers answer a range that they don't accept with the whole object.
  if (from > 0 && !found.ContentRange?.startsWith(`bytes ${from}-`))
    throw new Error(`The object store answered ${range.Range} with ${found.ContentRange}`)
  return found.Body as AsyncIterable<Uint8Array>
}

// Missing, or too short. Servers agree on its status more than on its name.
const MISSING = new Set([404, 416])

function nullWhenMissing(error: unknown): null {
  const status = (error as Partial<S3ServiceException>).$metadata?.httpStatusCode
  if (status !== undefined && MISSING.has(status)) return null
  throw error
}
