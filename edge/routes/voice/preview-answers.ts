import { fail } from '../../../sql/errors.ts'
import { findPreview, type Preview, type Speech } from '../../../sql/voice/previews.ts'
import { requireApiKey } from '../../../tasks/ai/keys.ts'
import { isAiProvider } from '../../../tasks/ai/providers.ts'
import { buildCachingHeaders, sendContent } from '../../files/content.ts'
import { sendPieces } from '../../http/pieces.ts'
import type { Header } from '../../http/reply.ts'
import type { EdgeRequest, ReplyHead, Responder } from '../../http/server.ts'
import { toJobFailure } from '../../pipeline/answer/responders.ts'
import type { Edge } from '../../pipeline/context.ts'
import { Answer } from '../../pipeline/route.ts'
import { prepend, readLive, readStored, watchPreviewProgress } from './preview-pieces.ts'

/**
 * Answers requests with speech that is stored or that a job is still storing. The pieces come from the table. The job's
 * events only signal when to read the table.
 */

/** A request for the speech of a preview, or for a whole one. */
export interface SpeechRequest {
  readonly edge: Edge
  readonly request: EdgeRequest
  readonly responder: Responder
  readonly head: (status: number, headers?: readonly Header[]) => ReplyHead
  readonly digest: Buffer
}

/** Finds the job that stores the speech, or starts it; returns its id. */
type StartJob = () => Promise<string>

/** Checks that the provider's API key is set. @throws fail('ai.missing_key') if it is not. */
export function requireKey(edge: Edge, { provider }: Pick<Speech, 'provider'>): void {
  if (!isAiProvider(provider)) throw fail('voice.provider_missing')
  requireApiKey(edge.settings.ai, provider)
}

// The ETag includes the generation, because each generation has different bytes.
const etagOf = (digest: Buffer, generation: string): string =>
  `"${digest.toString('hex', 0, 16)}-${generation}"`

const MP3_HEADERS: readonly Header[] = [['content-type', 'audio/mpeg']]

/** Sends stored speech with {@link sendContent}. */
export function answerStored(
  speechRequest: SpeechRequest,
  { generation, byte_size }: Preview,
  headers: readonly Header[] = [],
): Promise<Answer<unknown> | undefined> {
  const { edge, digest } = speechRequest
  return sendContent(speechRequest, {
    etag: etagOf(digest, generation),
    byteSize: byte_size,
    headers: [...MP3_HEADERS, ...headers],
    read: (from, length) => readStored(edge, { digest, generation }, from, length),
  })
}

/** Starts or joins the job that creates the speech, and sends the pieces as they arrive. */
export async function answerLive(
  speechRequest: SpeechRequest,
  start: StartJob,
  { background = false, headersOf = () => [] }: LiveOptions = {},
): Promise<Answer<unknown> | undefined> {
  const { edge, responder, head, digest } = speechRequest
  const jobId = await start()
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
    const buildHead = (): ReplyHead =>
      head(200, [
        ...buildCachingHeaders(etagOf(digest, pieces.generation)),
        ...MP3_HEADERS,
        ...headersOf(jobId),
      ])
    await sendPieces(responder, buildHead, prepend(await first, live))
    return undefined
  } finally {
    job.stop()
  }
}

interface LiveOptions {
  /** True to answer with the job without waiting for it. */
  readonly background?: boolean
  /** Returns additional headers for the job. */
  readonly headersOf?: (jobId: string) => readonly Header[]
}

/**
 * Waits until the whole speech is stored, then sends the requested range. Some players request only two bytes first.
 */
export async function answerRange(
  speechRequest: SpeechRequest,
  start: StartJob,
): Promise<Answer<unknown> | undefined> {
  const { edge, responder, digest } = speechRequest
  const jobId = await start()
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
  return answerStored(speechRequest, storedPreview)
}

/** True if the Range header requests less than the whole speech. */
export function requestsRange({ request }: SpeechRequest): boolean {
  return /^bytes=(?!0*-$)/.test(request.header('range').trim())
}

/** Answers a HEAD request for speech that is not stored completely. */
export function answerHead({ responder, head }: SpeechRequest): undefined {
  responder.send({ ...head(200, MP3_HEADERS), isHead: true })
}

function createAcceptedAnswer(jobId: string): Answer<unknown> {
  return new Answer({
    status: 202,
    headers: [['location', `/api/v1/jobs/${jobId}`]],
    value: { job_id: jobId },
  })
}
