import type { SecretKeys } from '../platform/keys.ts'

/** Tokens of links to drafts: the id of the link and a MAC, which proves that this deployment issued it. */

const PURPOSE = 'millrace.blog-preview'

export const previewTokenOf = (keys: SecretKeys, id: number): string =>
  `${id}.${keys.stored.token(PURPOSE, String(id))}`

/** Returns the id of the link that a token proves; null if it proves none. Compares in constant time. */
export function verifyPreviewToken(keys: SecretKeys, token: string): number | null {
  const [, id, mac] = /^([1-9]\d{0,15})\.([\w-]{43})$/.exec(token) ?? []
  if (id === undefined || !keys.stored.verify(mac!, PURPOSE, id)) return null
  return Number(id)
}
