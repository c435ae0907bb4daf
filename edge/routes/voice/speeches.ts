import { z } from 'zod'
import { insertHold, reserveBudget } from '../../../sql/budgets/budgets.ts'
import { fail } from '../../../sql/errors.ts'
import { requireQuota } from '../../../sql/quotas/quotas.ts'
import type { Speech } from '../../../sql/voice/previews.ts'
import {
  cancelSpeech,
  deleteSpeech,
  findSpeech,
  findSpeechByDigest,
  storeSpeech,
} from '../../../sql/voice/speeches.ts'
import type { AiProvider } from '../../../tasks/ai/providers.ts'
import { enqueue } from '../../../tasks/task.ts'
import { computeSpeechCost } from '../../../tasks/voice/speaking.ts'
import { speechDigestOf, synthesizeSpeech } from '../../../tasks/voice/speech.task.ts'
import { CONTENT_STATUSES } from '../../files/content.ts'
import type { Header } from '../../http/reply.ts'
import type { Caller } from '../../pipeline/access/auth.ts'
import type { Edge } from '../../pipeline/context.ts'
import { JobLinksQuery, wantsBackground } from '../../pipeline/request/input.ts'
import type { RequestContext } from '../../pipeline/request/request-context.ts'
import { route } from '../../pipeline/route.ts'
import { type JobLinks, linkJob, parseJobLinks } from '../../pipeline/write/job-links.ts'
import { Id } from '../ai/shapes.ts'
import { viewerOf } from '../rag/access.ts'
import {
  answerHead,
  answerLive,
  answerRange,
  answerStored,
  requestsRange,
  requireKey,
  type SpeechRequest,
} from './preview-answers.ts'
import { readVoiceSettings } from './settings.ts'
import { WholeSpeechRequest } from './shapes.ts'
import { chooseModel, chooseVoice } from './voices.ts'

const params = z.object({ job_id: Id })

// A text of a million characters, as JSON with escapes for each.
const MAX_BODY_BYTES = 8 * 1024 * 1024

/** Names the speech for later requests. */
const buildLocation = (jobId: string): readonly Header[] => [['content-location', `/voice/speech/${jobId}`]]

/** Speech of texts of any length. A caller without an account, in an open area, has no quota. */
export const speechRoutes = [
  route({
    method: 'post',
    path: '/speech',
    summary: 'Speak a text of any length',
    description: `Streams MP3 as the provider sends it. The text is cut at sentences \
into pieces that the provider accepts; \`language\` names the rules for that. A text of more than \`MAX_SPEECH_CHARACTERS\` \
is refused. The default voice is that of the settings if it has the wanted provider and model, or else the first one \
that has them. \`Content-Location\` names the speech, by its job. A stored speech of the caller is returned without a call to \
the provider, or gets a new job with \`background\`; concurrent requests get the same bytes. A client that leaves stops nothing: \
cancel the job to stop. \`Prefer: respond-async\` has the same effect as \`background\`.`,
    query: JobLinksQuery,
    body: WholeSpeechRequest,
    bodyBytes: MAX_BODY_BYTES,
    produces: 'audio/mpeg',
    alsoAnswers: { 202: 'The job of the speech, if requested or if it takes long: `{job_id}`' },
    errors: [
      'voice.voice_missing',
      'voice.unknown',
      'voice.speech_too_long',
      'quota.speech_characters',
      'quota.waiting_jobs',
      'quota.ai_budget',
      'quota.ai_key_budget',
      'ai.missing_key',
      'ai.refused',
      'ai.failed',
      'ai.interrupted',
      'job.cancelled',
      'webhook.no_account',
    ],
    whyRepeatable: 'a speech is stored and returned again',
    raw: async ({ body, ...asked }) => {
      const background = wantsBackground(asked.request)
      const links = parseJobLinks(asked, background)
      const { edge, request, responder, head, caller } = asked
      const { speech, language } = await resolveSpeech(edge, body)
      const digest = speechDigestOf(caller.ownerId, language, speech)
      const speechRequest: SpeechRequest = { edge, request, responder, head, digest }
      // The job of a stored speech makes no call to the provider.
      const stored = background ? null : await edge.db.maybeOne(findSpeechByDigest(digest))
      if (stored !== null && stored.byte_size !== null)
        return answerStored(speechRequest, toPreview(stored), buildLocation(stored.job_id))
      return answerLive(speechRequest, () => startSpeech({ ...asked, digest, speech, language, links }), {
        background,
        headersOf: buildLocation,
      })
    },
  }),

  route({
    method: 'get',
    path: '/speech/:job_id',
    summary: 'Get a speech',
    description: `For its owner and admins, by the latest job of the speech. A speech whose job still runs is streamed as it \
arrives. Supports \`If-None-Match\`, \`Range\` and \`If-Range\`; a range of an incomplete speech is sent once it is complete.`,
    params,
    produces: 'audio/mpeg',
    alsoAnswers: { 202: 'The job of the speech, if it takes long: `{job_id}`', ...CONTENT_STATUSES },
    errors: [
      'voice.speech_missing',
      'ai.missing_key',
      'ai.refused',
      'ai.failed',
      'ai.interrupted',
      'job.cancelled',
    ],
    raw: async ({ params: { job_id: jobId }, caller, edge, request, responder, head }) => {
      const { ownerId, seesAll } = viewerOf(caller)
      const stored = await edge.db.maybeOne(findSpeech(jobId, ownerId, seesAll))
      if (stored === null) throw fail('voice.speech_missing')
      const digest = Buffer.from(stored.digest)
      const speechRequest: SpeechRequest = { edge, request, responder, head, digest }
      if (stored.byte_size !== null) return answerStored(speechRequest, toPreview(stored))
      if (request.method === 'HEAD') return answerHead(speechRequest)
      const start = async () => jobId
      return requestsRange(speechRequest)
        ? answerRange(speechRequest, start)
        : answerLive(speechRequest, start)
    },
  }),

  route({
    method: 'delete',
    path: '/speech/:job_id',
    summary: 'Delete a speech',
    description: 'Cancels its job. The usage stays.',
    params,
    errors: ['voice.speech_missing'],
    handle: ({ params: { job_id: jobId }, caller, edge, transaction }) =>
      transaction(async (tx) => {
        const { ownerId, seesAll } = viewerOf(caller)
        // Locks the job before the speech, because the end of the job uses the same order.
        const stopped = await tx.maybeOne(cancelSpeech(jobId, ownerId, seesAll))
        if ((await tx.maybeOne(deleteSpeech(jobId, ownerId, seesAll))) === null)
          throw fail('voice.speech_missing')
        if (stopped !== null) tx.afterCommit(() => edge.publisher.notify(stopped.job_id))
        return undefined
      }),
  }),
]

const toPreview = ({ generation, byte_size }: { generation: string | null; byte_size: number | null }) => ({
  generation: generation!,
  byte_size: byte_size!,
})

/**
 * Resolves the voice, model and speed of a request.
 * @throws fail('voice.voice_missing'), fail('voice.unknown'), fail('voice.speech_too_long')
 */
async function resolveSpeech(
  { db, settings: { maxSpeechCharacters: limit } }: Edge,
  { text, language, ...choice }: z.output<typeof WholeSpeechRequest>,
): Promise<{ readonly speech: Speech; readonly language: string | null }> {
  const size = text.length
  if (size > limit) throw fail('voice.speech_too_long', { size, limit })
  const settings = await readVoiceSettings(db)
  const voice = chooseVoice(choice, settings)
  const speech = {
    provider: voice.provider_id,
    model: chooseModel(voice, choice.model, settings.tts_model),
    voice: voice.id,
    speed: choice.speed ?? settings.tts_speed,
    text,
  }
  return { speech, language: language ?? null }
}

interface StartInput {
  readonly edge: Edge
  readonly caller: Caller
  readonly requestId: string
  readonly digest: Buffer
  readonly speech: Speech
  readonly language: string | null
  readonly exchange: RequestContext
  readonly links: JobLinks | null
}

/** Starts the job of a speech, or joins it. @throws fail('ai.missing_key'), fail('quota.KIND') */
async function startSpeech(input: StartInput): Promise<string> {
  const { edge, caller, requestId, digest, speech, language, links } = input
  const { ownerId } = caller
  requireKey(edge, speech)
  const { provider, model } = speech
  const payload = {
    ...{ digest: digest.toString('hex'), provider: provider as AiProvider, model },
    ...(caller.key === null ? {} : { key_id: caller.key.id }),
  }
  const payers = { accountId: ownerId, keyId: caller.key?.id ?? null }
  const { jobId } = await edge.db.transaction(async (tx) => {
    const added = await enqueue(tx, synthesizeSpeech, payload, {
      ownerId,
      requestId,
      settings: edge.settings,
    })
    await tx.run(storeSpeech({ ...speech, digest, ownerId, jobId: added.jobId, language }))
    await requireQuota(tx, ownerId, ['speech_characters'], edge.settings.quotas)
    if (!added.joined) {
      const hold = { jobId: added.jobId, tokens: 0, cost: computeSpeechCost(model, speech.text) }
      await reserveBudget(tx, payers, edge.settings.ai.budgets, () => insertHold(payers, hold))
    }
    if (links !== null) await linkJob(tx, input, added, links)
    return added
  })
  return jobId
}
