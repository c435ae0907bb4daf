import { createHash } from 'node:crypto'
import type { z } from 'zod'
import { insertHold, reserveBudget } from '../../../sql/budgets/budgets.ts'
import type { Transaction } from '../../../sql/db.ts'
import { findDocumentContent, hasBlob } from '../../../sql/documents/blobs.ts'
import { fail } from '../../../sql/errors.ts'
import { uuidv7 } from '../../../sql/ids.ts'
import { insertTranscription } from '../../../sql/voice/transcriptions.ts'
import { requireApiKey } from '../../../tasks/ai/keys.ts'
import type { AiProvider } from '../../../tasks/ai/providers.ts'
import { createDocument, discardUnusedUpload, findLostDuplicate } from '../../../tasks/documents/store.ts'
import { enqueue, type JobRef } from '../../../tasks/task.ts'
import { STT_MODELS } from '../../../tasks/voice/catalog.ts'
import { estimateRecognition } from '../../../tasks/voice/estimate.ts'
import { requireCuttable, requireRecognition } from '../../../tasks/voice/recognition.ts'
import { transcribe } from '../../../tasks/voice/transcribe.task.ts'
import type { Transcription } from '../../../tasks/voice/transcription.ts'
import { type StoredUpload, storeUpload } from '../../files/upload-store.ts'
import type { EdgeRequest } from '../../http/server.ts'
import type { Caller } from '../../pipeline/access/auth.ts'
import { requireScope } from '../../pipeline/access/scopes.ts'
import type { Edge } from '../../pipeline/context.ts'
import { findMaxJsonBytes, parseBody } from '../../pipeline/request/input.ts'
import type { AnyRoute, ReceivedBody } from '../../pipeline/route.ts'
import { titleOf } from '../documents/upload.ts'
import { readVoiceSettings } from './settings.ts'
import { type RecognitionFields, TranscriptionRequest, UploadFields } from './shapes.ts'

/** Receives recordings and starts their transcription. */

/** Model and options of a transcription. */
interface RecognitionOptions {
  readonly provider: AiProvider
  readonly model: string
  readonly language: string | null
  readonly prompt: string | null
}

/**
 * Source of a recording: an uploaded file or an existing document. `lost` is the id of an earlier blob with the same
 * bytes, if the store has lost them. Otherwise `lost` is null.
 */
type RecordingSource =
  | { readonly upload: StoredUpload<RecognitionFields>; readonly lost: number | null }
  | { readonly documentId: number }

interface ReceivedRecording extends ReceivedBody {
  readonly choice: RecognitionOptions
  readonly source: RecordingSource
}

interface ReceiveInput {
  readonly edge: Edge
  readonly request: EdgeRequest
  readonly caller: Caller
}

/**
 * Reads a form with a file, or JSON with a document id.
 * @throws every error that can be detected without a call to a provider.
 */
export function receiveRecording(input: ReceiveInput): Promise<ReceivedRecording> {
  const type = input.request.header('content-type')
  if (/^multipart\/form-data\s*(;|$)/i.test(type)) return receiveRecordingUpload(input)
  if (type !== '' && !/^application\/([\w.+-]+\+)?json\s*(;|$)/i.test(type))
    throw fail('request.media_type', { expected: 'multipart/form-data or application/json' })
  return receiveDocumentId(input)
}

async function receiveRecordingUpload({ edge, request, caller }: ReceiveInput): Promise<ReceivedRecording> {
  requireScope(caller, 'documents', 'write')
  const maxBytes = edge.settings.maxUploadBytes
  const upload = await storeUpload(edge, request, { fields: UploadFields, maxBytes })
  const { blob, fields, file, mediaType } = upload
  const discard = (): Promise<void> => discardUnusedUpload(edge.blobs, edge.log, blob)
  try {
    requireCuttable(mediaType, blob.byteSize)
    const choice = await resolveRecognitionOptions(edge, fields)
    const lost = await findLostDuplicate(edge.db, edge.blobs, blob)
    const fingerprint = Buffer.concat([blob.sha256, Buffer.from(JSON.stringify([fields, file]))])
    return { choice, source: { upload, lost }, fingerprint, discard }
  } catch (error) {
    await discard()
    throw error
  }
}

async function receiveDocumentId({ edge, request, caller }: ReceiveInput): Promise<ReceivedRecording> {
  requireScope(caller, 'documents', 'read')
  const route = { body: TranscriptionRequest } as Pick<AnyRoute, 'body'> as AnyRoute
  const { value, bytes } = await parseBody(route, request, findMaxJsonBytes(edge.settings))
  const { document_id: documentId, ...fields } = value as z.output<typeof TranscriptionRequest>
  const choice = await resolveRecognitionOptions(edge, fields)
  return { choice, source: { documentId }, fingerprint: bytes, discard: async () => {} }
}

/**
 * Completes the fields of a request with the voice settings.
 * @throws if the model is unknown, rejects prompts, or has no API key.
 */
async function resolveRecognitionOptions(
  { db, settings: { ai } }: Edge,
  { model, language, prompt }: RecognitionFields,
): Promise<RecognitionOptions> {
  const { stt_model, stt_language } = await readVoiceSettings(db)
  const id = model ?? stt_model
  const provider = STT_MODELS.find((one) => one.id === id)?.provider_id
  if (provider === undefined)
    throw fail('voice.unknown', { field: 'model', id, known: STT_MODELS.map((one) => one.id).join(', ') })
  if (prompt !== undefined && !requireRecognition(id).acceptsPrompt)
    throw fail('voice.prompt_unsupported', { model: id })
  requireApiKey(ai, provider)
  return { provider, model: id, language: language ?? stt_language, prompt: prompt ?? null }
}

interface BeginInput {
  readonly edge: Edge
  readonly tx: Transaction
  readonly caller: Caller
  readonly requestId: string
  readonly received: ReceivedRecording
}

/** Stores a transcription with its job, or joins an unfinished one. */
export async function beginTranscription(input: BeginInput): Promise<JobRef<Transcription>> {
  const { edge, tx, caller, requestId, received } = input
  const { ownerId } = caller
  const { provider, model, language, prompt } = received.choice
  const { documentId, size } = await resolveDocument(input)
  const id = uuidv7()
  const payload = {
    transcription_id: id,
    document_id: documentId,
    provider,
    model,
    language,
    prompt_sha256: prompt === null ? null : createHash('sha256').update(prompt).digest('hex'),
    ...(caller.key === null ? {} : { key_id: caller.key.id }),
  }
  // Enqueues first, which locks the actor. The end of the job also locks the actor before any rows.
  const options = { ownerId, requestId, settings: edge.settings }
  const ref = await enqueue(tx, transcribe, payload, options)
  const { jobId } = ref
  if (ref.joined) return ref
  const payers = { accountId: ownerId, keyId: caller.key?.id ?? null }
  const hold = { jobId, ...estimateRecognition(model, size) }
  await reserveBudget(tx, payers, edge.settings.ai.budgets, () => insertHold(payers, hold))
  await tx.run(insertTranscription({ id, ownerId, documentId, jobId, provider, model, language, prompt }))
  return ref
}

/** Finds the document to transcribe, or creates it from the uploaded file. @throws if it cannot be transcribed. */
async function resolveDocument({
  edge,
  tx,
  caller: { ownerId },
  received: { source },
}: BeginInput): Promise<{ documentId: number; size: number }> {
  if ('documentId' in source) {
    const { documentId } = source
    const content = await tx.maybeOne(findDocumentContent(documentId, ownerId))
    if (content === null) throw fail('document.missing')
    const { byte_size: size, media_type: type } = content
    requireCuttable(type, size)
    if (!hasBlob(content)) throw fail('document.bytes_missing')
    return { documentId, size }
  }
  const { blob, file, mediaType } = source.upload
  const title = titleOf(undefined, file.fileName)
  const { id } = await createDocument(
    tx,
    blob,
    source.lost,
    { ownerId, title, kind: 'audio', mediaType },
    edge.settings.quotas,
  )
  // The upload is unused if the owner already has the same bytes.
  tx.afterCommit(() => void discardUnusedUpload(edge.blobs, edge.log, blob))
  return { documentId: id, size: blob.byteSize }
}
