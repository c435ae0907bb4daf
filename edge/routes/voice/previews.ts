import { z } from 'zod'
import { findPreview, type Speech, storePreviewRequest } from '../../../sql/voice/previews.ts'
import { enqueue } from '../../../tasks/task.ts'
import { previewDigestOf, synthesizePreview } from '../../../tasks/voice/preview.task.ts'
import { CONTENT_STATUSES } from '../../files/content.ts'
import type { Edge } from '../../pipeline/context.ts'
import { JobLinksQuery, wantsBackground } from '../../pipeline/request/input.ts'
import type { RequestContext } from '../../pipeline/request/request-context.ts'
import { route } from '../../pipeline/route.ts'
import { type JobLinks, linkJob, parseJobLinks } from '../../pipeline/write/job-links.ts'
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
import { PreviewQuery, PreviewRequest } from './shapes.ts'
import { chooseModel, requireVoice } from './voices.ts'

const sharedOptions = {
  produces: 'audio/mpeg',
  errors: [
    'voice.voice_missing',
    'voice.unknown',
    'ai.missing_key',
    'ai.refused',
    'ai.failed',
    'ai.interrupted',
    'job.cancelled',
    'webhook.no_account',
  ],
} as const

const GENERATION_NOTE = `The model defaults to that of the settings if it supports the voice, or else to the first model of \
the voice. The speed defaults to that of the settings. A stored preview is returned without a call to the provider. A new \
one is streamed as the provider sends it; concurrent requests get the same bytes.`

/** Previews of voices. */
export const previewRoutes = [
  route({
    ...sharedOptions,
    method: 'post',
    path: '/preview',
    summary: 'Generate a preview of a voice',
    description: `${GENERATION_NOTE} \`Prefer: respond-async\` has the same effect as \`background\`.`,
    query: JobLinksQuery,
    body: PreviewRequest,
    alsoAnswers: { 202: 'The job of the preview, if requested or if it takes long: `{job_id}`' },
    whyRepeatable: 'a preview is stored and returned again',
    raw: async ({ body, ...asked }) => {
      const background = wantsBackground(asked.request)
      const links = parseJobLinks(asked, background)
      const { voice_id, ...options } = body
      const { speechRequest, speech, storedPreview } = await findSpeech(asked, voice_id, options)
      if (storedPreview !== null) return answerStored(speechRequest, storedPreview)
      return answerLive(speechRequest, () => startPreview(asked, speech, links), { background })
    },
  }),

  route({
    ...sharedOptions,
    method: 'get',
    path: '/preview/:voice_id',
    summary: 'Generate a voice preview in a browser',
    costsMoney: true,
    description: `${GENERATION_NOTE} Supports \`If-None-Match\`, \`Range\` and \`If-Range\`. A range of a new preview is sent \
once the whole preview is stored. HEAD generates nothing.`,
    params: z.object({ voice_id: z.string() }),
    query: PreviewQuery,
    alsoAnswers: {
      202: 'The job of the preview, if it takes long: `{job_id}`',
      ...CONTENT_STATUSES,
    },
    raw: async ({ params, query, ...asked }) => {
      const { speechRequest, speech, storedPreview } = await findSpeech(asked, params.voice_id, query)
      if (storedPreview !== null) return answerStored(speechRequest, storedPreview)
      const start = () => startPreview(asked, speech)
      if (speechRequest.request.method !== 'HEAD')
        return requestsRange(speechRequest)
          ? answerRange(speechRequest, start)
          : answerLive(speechRequest, start)
      requireKey(asked.edge, speech)
      return answerHead(speechRequest)
    },
  }),
]

interface SpeechOptions {
  readonly text?: string | undefined
  readonly speed?: number | undefined
  readonly model?: string | undefined
}

/**
 * Resolves the requested speech and finds its stored preview, which is null if there is none.
 * @throws as {@link resolvePreview} does.
 */
async function findSpeech(
  { edge, request, responder, head }: Omit<SpeechRequest, 'digest'>,
  voiceId: string,
  options: SpeechOptions,
) {
  const speech = await resolvePreview(edge, voiceId, options)
  const digest = previewDigestOf(speech)
  const speechRequest: SpeechRequest = { edge, request, responder, head, digest }
  return { speechRequest, speech, storedPreview: await edge.db.maybeOne(findPreview(digest)) }
}

/**
 * Resolves the voice, model and text of a preview request.
 * @throws fail('voice.voice_missing'), or fail('voice.unknown') if the model does not support the voice.
 */
async function resolvePreview({ db }: Edge, voiceId: string, options: SpeechOptions): Promise<Speech> {
  const settings = await readVoiceSettings(db)
  const voice = requireVoice(voiceId)
  return {
    provider: voice.provider_id,
    model: chooseModel(voice, options.model, settings.tts_model),
    voice: voice.id,
    speed: options.speed ?? settings.tts_speed,
    text: options.text ?? voice.preview_text,
  }
}

interface StartInput {
  readonly edge: Edge
  readonly exchange: RequestContext
  readonly requestId: string
}

/** Starts or joins the job of a preview. */
async function startPreview(
  { edge, exchange, requestId }: StartInput,
  speech: Speech,
  links: JobLinks | null = null,
): Promise<string> {
  requireKey(edge, speech)
  const digest = previewDigestOf(speech)
  // The job has no owner, because all requests for the same preview share it.
  const options = { ownerId: null, requestId, settings: edge.settings }
  const { jobId } = await edge.db.transaction(async (tx) => {
    await tx.run(storePreviewRequest(digest, speech))
    const added = await enqueue(tx, synthesizePreview, { digest: digest.toString('hex') }, options)
    if (links !== null) await linkJob(tx, { edge, exchange }, added, links)
    return added
  })
  return jobId
}
