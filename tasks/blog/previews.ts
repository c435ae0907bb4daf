import { timingSafeEqual } from 'node:crypto'
import { computeMac, digestOf } from '../accounts/tokens.ts'

/** Tokens of links to drafts: the id of the link and a MAC, which proves that this deployment issued it. */

export const previewTokenOf = (secretKey: string, id: number): string =>
  `${id}.${computeMac(secretKey, 'millrace.blog-preview', String(id)).toString('base64url')}`

/** Returns the id of the link that a token proves; null if it proves none. Compares in constant time. */
export function verifyPreviewToken(secretKey: string, token: string): number | null {
  const match = /^([1-9]\d{0,15})\.[\w-]{43}$/.exec(token)
  if (match === null) return null
  const id = Number(match[1])
  return timingSafeEqual(digestOf(token), digestOf(previewTokenOf(secretKey, id))) ? id : null
}
