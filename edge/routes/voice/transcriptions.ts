import { z } from 'zod'
import { fail } from '../../../sql/errors.ts'
import {
  cancelTranscription,
  deleteTranscription,
  readTranscription,
  readTranscriptions,
  TRANSCRIPTION_ORDER,
} from '../../../sql/voice/transcriptions.ts'
import { Transcription, TranscriptionSummary } from '../../../tasks/voice/transcription.ts'
import type { Header } from '../../http/reply.ts'
import { answerArray, buildCursorSchema } from '../../pipeline/request/lists.ts'
import { count } from '../../pipeline/request/schemas.ts'
import { answerJson, route } from '../../pipeline/route.ts'
import { Id } from '../ai/shapes.ts'
import { viewerOf } from '../rag/access.ts'
import { TranscriptionRequest, TranscriptionUpload } from './shapes.ts'
import { SUBTITLE_TYPES, writeSubtitles } from './subtitles.ts'
import { beginTranscription, receiveRecording } from './transcribing.ts'

const params = z.object({ transcription_id: Id })

/**
 * Routes for transcriptions. Recordings are documents, so callers need an account even in areas without authentication.
 */
export const transcriptionRoutes = [
  route({
    method: 'post',
    path: '/transcriptions',
    summary: 'Transcribe a recording',
    description: `For accounts only, even in an open area. Takes a form with the \`file\`, which becomes a document of the \
kind \`audio\`, or JSON with the \`document_id\` of a document of the caller. An API key needs the scope to write \
documents for a file, or to read them for an id. Accepts FLAC, MP3, MP4, MPEG, M4A, Ogg, WAV and WebM, \
detected by their bytes. Recordings of more than 25 MiB, or too long for the model, are cut at pauses and joined; \
MPEG cannot be cut. \`model\` and \`language\` default to the voice settings; without any language, the model detects it. \
\`prompt\` lists names and words to expect. Whisper models return \`segments\` and the language, \
\`gpt-4o-transcribe-diarize\` segments with speakers, \`gpt-transcribe\` the language, and Mistral models segments unless \
the language is given. With OpenAI models other than Whisper, the stream of the job has a \`chunk\` for each piece of the \
text; on \`restart\`, discard all earlier chunks. A request with the same recording, model, language and prompt joins an \
unfinished one.`,
    auth: 'user',
    body: TranscriptionUpload,
    bodyType: 'multipart',
    jsonBody: TranscriptionRequest,
    response: Transcription,
    errors: [
      'document.missing',
      'document.bytes_missing',
      'document.empty',
      'document.file_required',
      'document.store_failed',
      'voice.not_audio',
      'voice.audio_too_large',
      'voice.audio_undecodable',
      'voice.prompt_unsupported',
      'voice.unknown',
      'voice.transcription_missing',
      'quota.ai_budget',
      'quota.ai_key_budget',
      'ai.missing_key',
      'ai.refused',
      'ai.failed',
    ],
    sideEffect: true,
    receive: receiveRecording,
    job: beginTranscription,
  }),

  route({
    method: 'get',
    path: '/transcriptions',
    summary: 'List transcriptions without their text, newest first',
    description: 'Lists those of the caller; for admins, those of all users.',
    auth: 'user',
    query: z.object({
      limit: count({ min: 1, max: 200, fallback: 50 }),
      cursor: buildCursorSchema(TRANSCRIPTION_ORDER),
    }),
    response: z.array(TranscriptionSummary),
    reads: 'list',
    handle: async ({ query: { limit, cursor = null }, caller, reader, request }) => {
      const { ownerId, seesAll } = viewerOf(caller)
      return answerArray(
        (await reader.text(readTranscriptions, [ownerId, seesAll, cursor, 0, limit]))!,
        request,
      )
    },
  }),

  route({
    method: 'get',
    path: '/transcriptions/:transcription_id',
    summary: 'Get a transcription',
    description: `For its owner and admins. \`format=srt\` and \`format=vtt\` answer with subtitles, which need \
\`segments\`.`,
    auth: 'user',
    params,
    query: z.object({
      format: z
        .enum(['json', 'srt', 'vtt'])
        .default('json')
        .meta({ description: '`srt` answers with SubRip, `vtt` with WebVTT' }),
    }),
    response: Transcription,
    produces: Object.values(SUBTITLE_TYPES),
    errors: ['voice.transcription_missing', 'voice.no_subtitles'],
    raw: async ({ params: { transcription_id: id }, query: { format }, caller, edge, ...input }) => {
      const { ownerId, seesAll } = viewerOf(caller)
      const text = await edge.reader.text(readTranscription, [id, ownerId, seesAll])
      if (text === null) throw fail('voice.transcription_missing')
      if (format === 'json') return answerJson(text)
      const body = Buffer.from(writeSubtitles(text, format))
      const headers: readonly Header[] = [['content-type', `${SUBTITLE_TYPES[format]}; charset=utf-8`]]
      input.responder.send({ ...input.head(200, headers), body, isHead: input.request.method === 'HEAD' })
      return undefined
    },
  }),

  route({
    method: 'delete',
    path: '/transcriptions/:transcription_id',
    summary: 'Delete a transcription',
    description: 'Cancels its job. The document and the usage stay.',
    auth: 'user',
    params,
    errors: ['voice.transcription_missing'],
    handle: ({ params: { transcription_id: id }, caller, edge, transaction }) =>
      transaction(async (tx) => {
        const { ownerId, seesAll } = viewerOf(caller)
        // Locks the job before the transcription, because the end of the job uses the same order.
        const stopped = await tx.maybeOne(cancelTranscription(id, ownerId, seesAll))
        if ((await tx.maybeOne(deleteTranscription(id, ownerId, seesAll))) === null)
          throw fail('voice.transcription_missing')
        if (stopped !== null) tx.afterCommit(() => edge.publisher.notify(stopped.job_id))
        return undefined
      }),
  }),
]
