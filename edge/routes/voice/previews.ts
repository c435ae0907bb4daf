import { z } from 'zod'
import { fail } from '../../../sql/errors.ts'
import { findPreview, type Speech } from '../../../sql/voice.ts'
import { VOICES, type Voice } from '../../../tasks/voice/catalog.ts'
import { digestOf } from '../../../tasks/voice/preview.ts'
import type { Edge } from '../../pipeline/context.ts'
import { wantsBackground } from '../../pipeline/input.ts'
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
  ],
} as const

const HOW = `The model is the one of the settings where it speaks with the voice, or else the voice's first; the speed is \
the settings'. What was spoken once is kept, and answered without asking the provider. What was not goes out as it comes \
from there; all who ask for it meanwhile are given the same bytes.`

/** Hearing a voice. */
export const previewRoutes = [
  route({
    ...common,
    method: 'post',
    path: '/preview',
    summary: 'Hear a voice',
    description: HOW,
    query: z.object({ background: z.string().optional() }),
    body: PreviewRequest,
    alsoAnswers: { 202: 'The job that speaks, when that was wanted or takes long: `{job_id}`' },
    repeatable: 'what was spoken once is kept, and given again',
    raw: async ({ body, ...asked }) => {
      const background = wantsBackground(asked.request)
      const { voice_id, ...how } = body
      const { want, digest, kept } = await lookUp(asked, voice_id, how)
      return kept === null ? answerLive(want, digest, background) : answerStored(want, digest, kept, false)
    },
  }),

  route({
    ...common,
    method: 'get',
    path: '/preview/:voice_id',
    summary: 'Hear a voice, in a browser',
    spends: true,
    description: `${HOW} Takes \`If-None-Match\`, \`Range\` and \`If-Range\`; a part of what is still spoken is answered at its end. HEAD has nothing spoken.`,
    params: z.object({ voice_id: z.string() }),
    query: PreviewQuery,
    alsoAnswers: {
      202: 'The job that speaks, when that takes long: `{job_id}`',
      206: 'The range asked for',
      304: 'The client has these bytes',
      416: 'The range lies outside of them',
    },
    raw: async ({ params, query, ...asked }) => {
      const { want, digest, kept } = await lookUp(asked, params.voice_id, query)
      if (kept !== null) return answerStored(want, digest, kept, true)
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

/** What is to be spoken, and what of it is kept. @throws as {@link speechOf} does. */
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

/** @throws fail('voice.voice_missing'), fail('voice.unknown') for a model that does not speak with the voice. */
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
