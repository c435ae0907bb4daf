import { z } from 'zod'
import type { SecretKeys } from '../platform/keys.ts'
import type { TaskDeclaration } from '../task.ts'
import { Encoding } from './encoding.ts'
import { Languages } from './languages.ts'
import { DOCUMENT_TIMEOUT_MS } from './limits.ts'

const Payload = z.strictObject({
  documentId: z.int(),
  force: z.boolean(),
  language: Languages.optional(),
  encoding: Encoding.optional(),
  /** The sealed password of an encrypted document; see `passwords.ts`. */
  sealedPassword: z.string().optional(),
})
export type ExtractPayload = z.output<typeof Payload>

export const ExtractCounts = z.strictObject({
  read: z.int().min(0),
  unread: z.int().min(0),
  skipped: z.int().min(0),
})
export type ExtractCounts = z.output<typeof ExtractCounts>

/** Declares `documents.extract` without `run`, because `run` itself enqueues extractions of attachments. */
export const EXTRACTION_TASK: TaskDeclaration<ExtractPayload, ExtractCounts> = {
  name: 'documents.extract',
  queue: 'documents',
  pool: 'children',
  actor: ({ documentId }) => `document:${documentId}`,
  links: ({ documentId }) => [{ kind: 'document', id: documentId }],
  secrets: ['sealedPassword'],
  whenBusy: 'join',
  // A forced extraction rereads pages, so it must not join one that skips them. The same holds for another language,
  // encoding or password.
  joinCriteria: ({ force, language, encoding, sealedPassword }) => ({
    ...(force && { force }),
    ...(language !== undefined && { language }),
    ...(encoding !== undefined && { encoding }),
    ...(sealedPassword !== undefined && { sealedPassword }),
  }),
  // A page takes at most ten minutes, but may wait for pages of other documents.
  stallSeconds: 3600,
  timeoutSeconds: DOCUMENT_TIMEOUT_MS / 1000 + 3600,
  payload: Payload,
  result: ExtractCounts,
}

const sealPurposeOf = (documentId: number): string => `document:${documentId}`

/** Seals a password for storage, because later renderings need it, and for a job's payload. */
export const sealPassword = (keys: SecretKeys, documentId: number, password: string): string =>
  keys.seal(sealPurposeOf(documentId), password)

/** Unseals a password; null if there is none, or if no key of the deployment opens it. */
export const unsealPassword = (keys: SecretKeys, documentId: number, sealed: string | null): string | null =>
  sealed === null ? null : keys.unseal(sealPurposeOf(documentId), sealed)
