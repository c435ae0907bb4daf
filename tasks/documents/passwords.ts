import { seal, unseal } from '../platform/sealed.ts'

/**
 * Encrypts the passwords of encrypted documents. A password that opened a document is stored, because later renderings
 * need it.
 */

const sealPurposeOf = (documentId: number): string => `document:${documentId}`

/** Seals a password for storage and for a job's payload. */
export const sealPassword = (secretKey: string, documentId: number, password: string): string =>
  seal(secretKey, sealPurposeOf(documentId), password)

/** Unseals a password; null if there is none, or if the deployment's key has changed. */
export const unsealPassword = (
  secretKey: string,
  documentId: number,
  sealed: string | null,
): string | null => (sealed === null ? null : unseal(secretKey, sealPurposeOf(documentId), sealed))
