import { z } from 'zod'
import { fail } from '../../../sql/errors.ts'
import { findPreview, type Speech } from '../../../sql/voice.ts'
import { VOICES, type Voice } from '../../../tasks/voice/catalog.ts'
import { digestOf } from '../../../tasks/voice/preview.ts'
import { SERVED_ANSWERS } from '../../content.ts'
import { parseCallback } from '../../pipeline/callbacks.ts'
import type { Edge } from '../../pipeline/context.ts'
import { BACKGROUND, CALLBACK_URL, wantsBackground } from '../../pipeline/input.ts'
import { route } from '../../pipeline/route.ts'
import { settingsNow } from './settings.ts'
import { PreviewQuery, PreviewRequest } from './shapes.ts'
import { answerLive, answerPart, answerStored, requireKey, type Want, wantsPart } from './speaking.ts'

const common = {
  produces: 'audio/mpeg',
  errors: [
    'voice.voice_missing',
    'voice.unknown',
    'ai.missing_key',
    'ai.refused',
    'ai.failed',
    'ai.interrupted',
    'webhook.no_account',
  ],
} as const

const HOW = `The model defaults to that of the settings if it supports the voice, or else to the first model of the voice. \
The speed defaults to that of the settings. A stored preview is returned without a call to the provider. A new one is \
streamed as the provider sends it; concurrent requests get the same bytes.`

/** Previews of voices. */
export const previewRoutes = [
  route({
    ...common,
    method: 'post',
    path: '/preview',
    summary: 'Generate a preview of a voice',
    description: `${HOW} \`Prefer: respond-async\` has the same effect as \`background\`.`,
    query: z.object({
      background: z.string().optional().meta({ type: 'boolean', description: BACKGROUND }),
      callback_url: z.string().optional().meta({ format: 'uri', maxLength: 2000, description: CALLBACK_URL }),
    }),
    body: PreviewRequest,
    alsoAnswers: { 202: 'The job of the preview, if requested or if it takes long: `{job_id}`' },
    repeatable: 'a preview is stored and returned again',
    raw: async ({ body, ...asked }) => {
      const background = wantsBackground(asked.request)
      const callback = parseCallback(asked, background)
      const { voice_id, ...how } = body
      const { want, digest, kept } = await lookUp(asked, voice_id, how)
      if (kept !== null) return answerStored(want, digest, kept)
      return answerLive(want, digest, background, callback)
    },
  }),

  route({
    ...common,
    method: 'get',
    path: '/preview/:voice_id',
    summary: 'Generate a voice preview in a browser',
    spends: true,
    description: `${HOW} Supports \`If-None-Match\`, \`Range\` and \`If-Range\`. A range of a new preview is sent once the \
whole preview is stored. HEAD generates nothing.`,
    params: z.object({ voice_id: z.string() }),
    query: PreviewQuery,
    alsoAnswers: {
      202: 'The job of the preview, if it takes long: `{job_id}`',
      ...SERVED_ANSWERS,
    },
    raw: async ({ params, query, ...asked }) => {
      const { want, digest, kept } = await lookUp(asked, params.voice_id, query)
      if (kept !== null) return answerStored(want, digest, kept)
      if (want.request.method !== 'HEAD')
        return wantsPart(want) ? answerPart(want, digest) : answerLive(want, digest, false)
      requireKey(want)
      want.responder.send({ ...want.head(200, [['content-type', 'audio/mpeg']]), head: true })
      return undefined
    },
  }),
]

interface How {
  readonly text?: string | undefined
  readonly speed?: number | undefined
  readonly model?: string | undefined
}

/** Resolves the requested speech and its stored preview, which is null if there is none. @throws see {@link speechOf} */
async function lookUp(
  { edge, request, requestId, responder, head }: Omit<Want, 'speech'>,
  voiceId: string,
  how: How,
) {
  const want: Want = {
    edge,
    request,
    requestId,
    responder,
    head,
    speech: await speechOf(edge, voiceId, how),
  }
  const digest = digestOf(want.speech)
  return { want, digest, kept: await edge.db.maybeOne(findPreview(digest)) }
}

/** @throws fail('voice.voice_missing'), or fail('voice.unknown') if the model does not support the voice. */
async function speechOf({ db }: Edge, voiceId: string, how: How): Promise<Speech> {
  const voice = VOICES.find(({ id }) => id === voiceId)
  if (voice === undefined) throw fail('voice.voice_missing')
  const settings = await settingsNow(db)
  return {
    provider: voice.provider_id,
    model: modelOf(voice, how.model, settings.tts_model),
    voice: voice.id,
    speed: how.speed ?? settings.tts_speed,
    text: how.text ?? voice.preview_text,
  }
}

function modelOf({ models }: Voice, wanted: string | undefined, usual: string): string {
  if (wanted === undefined) return models.includes(usual) ? usual : models[0]!
  if (models.includes(wanted)) return wanted
  throw fail('voice.unknown', { field: 'model', id: wanted, known: models.join(', ') })
}
