import { seal, unseal } from '../sealed.ts'

/** Passwords of encrypted documents. One that has opened its document is kept, sealed, to draw pages and to read them again. */

const place = (documentId: number): string => `document:${documentId}`

/** A password as it travels in a job and is stored. */
export const sealedPassword = (secretKey: string, documentId: number, password: string): string =>
  seal(secretKey, place(documentId), password)

/** The password that was sealed; null when there is none, or the deployment's key is another one by now. */
export const passwordOf = (secretKey: string, documentId: number, sealed: string | null): string | null =>
  sealed === null ? null : unseal(secretKey, place(documentId), sealed)
