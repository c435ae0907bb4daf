import { fail } from '../../../sql/errors.ts'
import { findPreview, type Preview, type Speech, storePreviewRequest } from '../../../sql/voice/previews.ts'
import { addJobCallback, type JobCallback } from '../../../sql/webhooks/webhooks.ts'
import { isAiProvider, keySettingName } from '../../../tasks/ai/providers.ts'
import { enqueue } from '../../../tasks/task.ts'
import { synthesizePreview } from '../../../tasks/voice/preview.task.ts'
import { sendPieces } from '../../files/blobs.ts'
import { buildCachingHeaders, sendContent } from '../../files/content.ts'
import type { Header } from '../../http/reply.ts'
import type { ChunkWriter, EdgeRequest, ReplyHead, Responder } from '../../http/server.ts'
import { toJobFailure } from '../../pipeline/answer/responders.ts'
import type { Edge } from '../../pipeline/context.ts'
import { Answer } from '../../pipeline/route.ts'
import { prepend, readLive, readStored, watchPreviewProgress } from './preview-pieces.ts'

/**
 * Answers preview requests with speech that is stored or that a job is still storing. The pieces come from the table.
 * The job's events only signal when to read the table.
 */

/** A preview request whose speech has been resolved. */
export interface SpeechRequest {
  readonly edge: Edge
  readonly request: EdgeRequest
  readonly requestId: string
  readonly responder: Responder
  readonly head: (status: number, headers?: readonly Header[]) => ReplyHead
  readonly speech: Speech
}

/** Checks that the provider's API key is set. @throws fail('ai.missing_key') if it is not. */
export function requireKey({ edge, speech: { provider } }: SpeechRequest): void {
  if (!isAiProvider(provider)) throw fail('voice.provider_missing')
  if (edge.settings.ai.endpoints[provider].apiKey === null)
    throw fail('ai.missing_key', { provider, setting: keySettingName(provider) })
}

// The ETag includes the generation, because each generation has different bytes.
const etagOf = (digest: Buffer, generation: string): string =>
  `"${digest.toString('hex', 0, 16)}-${generation}"`

const MP3_HEADERS: readonly Header[] = [['content-type', 'audio/mpeg']]

/** Sends a stored preview with {@link sendContent}. */
export function answerStored(
  speechRequest: SpeechRequest,
  digest: Buffer,
  { generation, byte_size }: Preview,
): Promise<Answer<unknown> | undefined> {
  return sendContent(speechRequest, {
    etag: etagOf(digest, generation),
    byteSize: byte_size,
    headers: MP3_HEADERS,
    read: (from, length) => readStored(speechRequest.edge, { digest, generation }, from, length),
  })
}

/** Starts or joins the job that creates a preview, and sends the pieces as they arrive. */
export async function answerLive(
  speechRequest: SpeechRequest,
  digest: Buffer,
  background: boolean,
  callback: JobCallback | null = null,
): Promise<Answer<unknown> | undefined> {
  requireKey(speechRequest)
  const { edge, responder, head } = speechRequest
  const jobId = await enqueuePreview(speechRequest, digest, callback)
  if (background) return createAcceptedAnswer(jobId)
  const disconnect = new AbortController()
  responder.onClose(() => disconnect.abort())
  const job = watchPreviewProgress(edge.hub, jobId, disconnect.signal)
  try {
    const pieces = { digest, generation: '' }
    const live = readLive(edge, pieces, job)
    // Resolves to null on a timeout, when the client disconnects, or when this process stops.
    const terminal = edge.hub.waitForTerminal(
      jobId,
      edge.settings.requestWaitSeconds * 1000,
      disconnect.signal,
    )
    const first = live.next()
    // Nothing awaits this promise after a timeout, so its rejection must be handled here.
    first.catch(() => {})
    const isInTime = await Promise.race([
      first.then(() => true),
      terminal.then((end) => (end === null ? false : first.then(() => true))),
    ])
    if (!isInTime) return createAcceptedAnswer(jobId)
    let writer: ChunkWriter | undefined
    await sendPieces(prepend(await first, live), () => {
      writer = responder.beginChunks(
        head(200, [...buildCachingHeaders(etagOf(digest, pieces.generation)), ...MP3_HEADERS]),
      )
      return writer
    })
    writer?.end()
    return undefined
  } finally {
    job.stop()
  }
}

/**
 * Waits until the whole preview is stored, then sends the requested range. Some players request only two bytes first.
 */
export async function answerRange(
  speechRequest: SpeechRequest,
  digest: Buffer,
): Promise<Answer<unknown> | undefined> {
  requireKey(speechRequest)
  const { edge, responder } = speechRequest
  const jobId = await enqueuePreview(speechRequest, digest)
  const disconnect = new AbortController()
  responder.onClose(() => disconnect.abort())
  const end = await edge.hub.waitForTerminal(
    jobId,
    edge.settings.requestWaitSeconds * 1000,
    disconnect.signal,
  )
  if (end === null) return createAcceptedAnswer(jobId)
  if (end.status !== 'done') throw toJobFailure(end)
  const storedPreview = await edge.db.maybeOne(findPreview(digest))
  if (storedPreview === null) throw fail('voice.preview_missing')
  return answerStored(speechRequest, digest, storedPreview)
}

/** True if the Range header requests less than the whole preview. */
export function requestsRange({ request }: SpeechRequest): boolean {
  return /^bytes=(?!0*-$)/.test(request.header('range').trim())
}

async function enqueuePreview(
  { edge, requestId, speech }: SpeechRequest,
  digest: Buffer,
  callback: JobCallback | null = null,
): Promise<string> {
  // The job has no owner, because all requests for the same preview share it.
  const options = { ownerId: null, requestId, settings: edge.settings }
  const { jobId } = await edge.db.transaction(async (tx) => {
    await tx.run(storePreviewRequest(digest, speech))
    const added = await enqueue(tx, synthesizePreview, { digest: digest.toString('hex') }, options)
    if (callback !== null) await tx.run(addJobCallback(added.jobId, callback))
    return added
  })
  edge.publisher.notify(jobId)
  return jobId
}

function createAcceptedAnswer(jobId: string): Answer<unknown> {
  return new Answer({
    status: 202,
    headers: [['location', `/api/v1/jobs/${jobId}`]],
    value: { job_id: jobId },
  })
}
