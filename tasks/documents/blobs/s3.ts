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
import type { StoreLocation } from './location.ts'
import { type Part, splitIntoParts } from './parts.ts'
import type { S3Settings } from './settings.ts'
import type { BlobStore } from './store.ts'

// S3's limits: 5 MiB minimum for all parts but the last, and at most 10,000 parts.
const MIN_PART_BYTES = 5 * 1024 * 1024
const MAX_PARTS = 10_000
// A download holds its connection until its client finishes, and slow clients would exhaust the default of 50.
const MAX_SOCKETS = 1000
const CONNECT_TIMEOUT_MS = 5_000
const SOCKET_TIMEOUT_MS = 60_000
// Maximum number of consecutive times that a download may break off without having received a byte.
const MAX_CONSECUTIVE_BREAKS = 3

/** Stores bytes as objects in a bucket. Uploads large objects in parts, with at most two parts in memory. */
export function createS3Store(
  { bucket, prefix }: StoreLocation & { kind: 's3' },
  settings: S3Settings,
  maxBytes: number,
): BlobStore {
  const client = createClient(settings)
  const objectName = (key: string) => ({ Bucket: bucket, Key: `${prefix}${key}` })
  const partBytes = Math.max(MIN_PART_BYTES, Math.ceil(maxBytes / MAX_PARTS))
  return {
    write: ({ key }, chunks, onUploadId) =>
      writeObject(client, objectName(key), splitIntoParts(chunks, partBytes), onUploadId),
    read: ({ key }, from, length) => readObject(client, objectName(key), from, length),
    exists: async ({ key }, byteSize) => {
      const head = await client.send(new HeadObjectCommand(objectName(key))).catch(nullIfMissing)
      return head?.ContentLength === byteSize
    },
    remove: async ({ key, upload_id }) => {
      if (upload_id !== null)
        await client
          .send(new AbortMultipartUploadCommand({ ...objectName(key), UploadId: upload_id }))
          .catch(nullIfMissing)
      await client.send(new DeleteObjectCommand(objectName(key))).catch(nullIfMissing)
    },
    close: () => client.destroy(),
  }
}

function createClient({ endpointUrl, region, credentials }: S3Settings): S3Client {
  return new S3Client({
    // Servers other than Amazon's have no regions, but the signature needs one.
    region: region ?? 'us-east-1',
    // Most servers other than Amazon's have no host name per bucket.
    ...(endpointUrl === undefined ? {} : { endpoint: endpointUrl, forcePathStyle: true }),
    // Without credentials, Amazon's client uses the machine's role.
    ...(credentials === undefined ? {} : { credentials }),
    // Some servers do not support the default checksums of Amazon's client.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    requestHandler: {
      connectionTimeout: CONNECT_TIMEOUT_MS,
      socketTimeout: SOCKET_TIMEOUT_MS,
      httpAgent: { maxSockets: MAX_SOCKETS },
      httpsAgent: { maxSockets: MAX_SOCKETS },
    },
  })
}

async function writeObject(
  client: S3Client,
  name: ObjectName,
  parts: AsyncIterable<Part>,
  onUploadId: (uploadId: string) => Promise<void>,
): Promise<void> {
  let upload: MultipartUpload | null = null
  try {
    for await (const { bytes, isLast } of parts) {
      if (upload === null && isLast)
        return void (await client.send(new PutObjectCommand({ ...name, Body: bytes })))
      upload ??= await MultipartUpload.begin(client, name, onUploadId)
      await upload.add(bytes)
    }
    await upload?.complete()
  } finally {
    await upload?.waitForPart()
  }
}

interface ObjectName {
  readonly Bucket: string
  readonly Key: string
}

/** Uploads an object in parts; sends one part while the next one fills. */
class MultipartUpload {
  private readonly client: S3Client
  private readonly name: ObjectName & { readonly UploadId: string }
  private readonly parts: { PartNumber: number; ETag: string | undefined }[] = []
  private partInFlight: Promise<void> = Promise.resolve()

  private constructor(client: S3Client, name: ObjectName & { readonly UploadId: string }) {
    this.client = client
    this.name = name
  }

  static async begin(
    client: S3Client,
    name: ObjectName,
    onUploadId: (uploadId: string) => Promise<void>,
  ): Promise<MultipartUpload> {
    const { UploadId } = await client.send(new CreateMultipartUploadCommand(name))
    if (UploadId === undefined) throw new Error('The object store returned no upload id')
    await onUploadId(UploadId)
    return new MultipartUpload(client, { ...name, UploadId })
  }

  /** Starts to send a part, once the previous part is stored. The previous part's buffer may then be reused. */
  async add(bytes: Uint8Array): Promise<void> {
    await this.partInFlight
    this.partInFlight = this.send(this.parts.length + 1, bytes)
    // The next `add` or `complete` throws the error.
    this.partInFlight.catch(() => {})
    this.parts.push({ PartNumber: this.parts.length + 1, ETag: undefined })
  }

  async complete(): Promise<void> {
    await this.partInFlight
    await this.client.send(
      new CompleteMultipartUploadCommand({ ...this.name, MultipartUpload: { Parts: this.parts } }),
    )
  }

  /** Waits for the part in flight. A part that arrives after the upload was aborted may stay in the bucket forever. */
  async waitForPart(): Promise<void> {
    await this.partInFlight.catch(() => {})
  }

  private async send(PartNumber: number, Body: Uint8Array): Promise<void> {
    const { ETag } = await this.client.send(new UploadPartCommand({ ...this.name, PartNumber, Body }))
    this.parts[PartNumber - 1]!.ETag = ETag
  }
}

/** Reads a range, and resumes it after a broken connection: object stores drop connections of slow clients. */
async function* readObject(
  client: S3Client,
  name: ObjectName,
  from: number,
  length: number,
): AsyncGenerator<Uint8Array> {
  const end = from + length
  for (let at = from, breaks = 0; at < end; breaks++) {
    let failure: unknown = new Error('The object store ended its response early')
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
      failure = error
    }
    if (at < end && breaks >= MAX_CONSECUTIVE_BREAKS) throw failure
  }
}

async function getRange(
  client: S3Client,
  name: ObjectName,
  from: number,
  end: number,
): Promise<AsyncIterable<Uint8Array>> {
  const range = { ...name, Range: `bytes=${from}-${end - 1}` }
  const found = await client.send(new GetObjectCommand(range)).catch(nullIfMissing)
  if (found === null || (found.ContentLength ?? 0) < end - from) throw fail('document.bytes_missing')
  // Some servers ignore a range that they do not accept, and return the whole object.
  if (from > 0 && !found.ContentRange?.startsWith(`bytes ${from}-`))
    throw new Error(`The object store returned ${found.ContentRange} for ${range.Range}`)
  return found.Body as AsyncIterable<Uint8Array>
}

// HTTP statuses of a missing or too short object. Servers agree more on the status than on the error's name.
const MISSING_STATUSES = new Set([404, 416])

function nullIfMissing(error: unknown): null {
  const status = (error as Partial<S3ServiceException>).$metadata?.httpStatusCode
  if (status !== undefined && MISSING_STATUSES.has(status)) return null
  throw error
}
