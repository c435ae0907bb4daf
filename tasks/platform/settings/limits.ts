import type { z } from 'zod'
import { countField, wholeNumberField } from './fields.ts'

/** Limits on the size of uploads, documents, texts and bodies. */
export interface SizeLimits {
  readonly maxUploadBytes: number
  /** Maximum length of a text that is spoken as a whole. */
  readonly maxSpeechCharacters: number
  /** Maximum number of pages of a document; longer documents are not read. */
  readonly maxDocumentPages: number
  /** Limits of one document, for all of its pages together. */
  readonly maxDocumentTextBytes: number
  readonly maxDocumentCpuSeconds: number
  readonly maxImportBytes: number
  /** Undefined uses each route's own limit. */
  readonly maxJsonBytes: number | undefined
}

export const sizeLimitShape = {
  MAX_UPLOAD_BYTES: countField(104_857_600, 1, 2 ** 40),
  MAX_SPEECH_CHARACTERS: countField(100_000, 1, 1_000_000),
  MAX_DOCUMENT_PAGES: countField(20_000, 1, 1_000_000),
  MAX_DOCUMENT_TEXT_BYTES: countField(64 * 2 ** 20, 1, 2 ** 40),
  MAX_DOCUMENT_CPU_SECONDS: countField(3600, 1),
  MAX_IMPORT_BYTES: countField(20_971_520, 1, 2 ** 30),
  MAX_JSON_BYTES: wholeNumberField(1, 2 ** 30).optional(),
}

export const buildSizeLimits = (env: z.output<z.ZodObject<typeof sizeLimitShape>>): SizeLimits => ({
  maxUploadBytes: env.MAX_UPLOAD_BYTES,
  maxSpeechCharacters: env.MAX_SPEECH_CHARACTERS,
  maxDocumentPages: env.MAX_DOCUMENT_PAGES,
  maxDocumentTextBytes: env.MAX_DOCUMENT_TEXT_BYTES,
  maxDocumentCpuSeconds: env.MAX_DOCUMENT_CPU_SECONDS,
  maxImportBytes: env.MAX_IMPORT_BYTES,
  maxJsonBytes: env.MAX_JSON_BYTES,
})
