import { type DocumentContent, findDocumentContent, hasBlob } from '../../sql/documents/blobs.ts'
import { Failure, fail } from '../../sql/errors.ts'
import type { TaskContext } from '../context.ts'
import type { Recording } from './ports.ts'
import {
  audioFileNameOf,
  MAX_AUDIO_BYTES,
  mayExceedDuration,
  requireCuttable,
  requireRecognition,
} from './recognition.ts'

/** Opens recordings for transcription: whole, or in pieces if they are too large for a provider or too long for a model. */

/** A recording or a piece of it, with its place in seconds. */
export interface OpenedRecording extends Pick<Recording, 'fileName' | 'mediaType' | 'pieces'> {
  readonly start: number
  /** Null if the recording is whole. */
  readonly end: number | null
  readonly isLast: boolean
  release(): void
}

/** Opens the part of a recording that starts at a time in seconds. */
export type OpenNext = (from: number) => Promise<OpenedRecording>

/**
 * Finds the recording of a document. @throws fail('document.missing'), fail('document.bytes_missing'),
 * fail('voice.not_audio'), fail('voice.audio_too_large')
 */
export async function findRecording(
  ctx: TaskContext,
  documentId: number,
  model: string,
): Promise<{ readonly mayBeCut: boolean; readonly openNext: OpenNext }> {
  const source = await ctx.db.maybeOne(findDocumentContent(documentId, ctx.job.ownerId))
  if (source === null) throw fail('document.missing')
  const { byte_size: size, media_type: mediaType } = source
  // Checked before the request, because the provider may charge for an interrupted one.
  if (!hasBlob(source) || !(await ctx.blobs.exists(source, size))) throw fail('document.bytes_missing')
  requireCuttable(mediaType, size)
  const read = (): AsyncIterable<Uint8Array> => ctx.blobs.read(source, 0, size)
  const isLarge = size > MAX_AUDIO_BYTES
  const mayBeCut = isLarge || mayExceedDuration(model, mediaType, size)
  return {
    mayBeCut,
    openNext: async (from) => {
      const piece = mayBeCut
        ? await cutNext(ctx, read, { from, model, mayBeWhole: !isLarge && from === 0 })
        : null
      return piece ?? openWhole(ctx, source, read)
    },
  }
}

function openWhole(
  ctx: TaskContext,
  { media_type: mediaType, byte_size: size }: DocumentContent,
  read: () => AsyncIterable<Uint8Array>,
): OpenedRecording {
  const fileName = audioFileNameOf(mediaType)
  if (fileName === null) throw fail('voice.not_audio', { type: mediaType })
  const pieces = reportProgress(ctx, read(), size)
  return { fileName, mediaType, pieces, start: 0, end: null, isLast: true, release: () => {} }
}

interface NextPiece {
  readonly from: number
  readonly model: string
  /** True if the recording is small enough to be sent whole. */
  readonly mayBeWhole: boolean
}

/** Cuts the next piece of a recording; null if the recording is sent whole, because it is short or cannot be cut. */
async function cutNext(
  ctx: TaskContext,
  read: () => AsyncIterable<Uint8Array>,
  { from, model, mayBeWhole }: NextPiece,
): Promise<OpenedRecording | null> {
  const { maxSeconds } = requireRecognition(model)
  const limits = { from, maxBytes: MAX_AUDIO_BYTES, maxSeconds }
  const piece = await ctx.providers.cutter.cut(read, limits, ctx.signal).catch((error: unknown) => {
    if (mayBeWhole && error instanceof Failure && error.code === 'voice.audio_too_large') return null
    throw error
  })
  if (piece === null) return null
  if (mayBeWhole && (piece.isLast || piece.totalSeconds <= maxSeconds)) {
    piece.release()
    return null
  }
  ctx.reportProgress('Transcribing', Math.round(piece.start), Math.ceil(piece.totalSeconds))
  return { ...piece, fileName: audioFileNameOf(piece.mediaType)! }
}

/** Yields the pieces and reports the number of bytes sent. */
async function* reportProgress(
  ctx: TaskContext,
  pieces: AsyncIterable<Uint8Array>,
  size: number,
): AsyncGenerator<Uint8Array> {
  let sent = 0
  for await (const piece of pieces) {
    ctx.reportProgress('Sending the recording', sent, size)
    sent += piece.length
    yield piece
  }
  ctx.reportProgress('Transcribing')
}
