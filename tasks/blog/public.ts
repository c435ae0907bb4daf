/** Keeps email addresses and unsafe image addresses out of public posts. */

/** Returns an author's name; null if there is none, or if it is an email address. */
export function toPublicName(name: string | null): string | null {
  const trimmed = name?.trim() ?? ''
  return trimmed === '' || /^[^\s@]+@[^\s@]+$/.test(trimmed) ? null : name
}

export const IMAGE_ADDRESS_RULE = 'must be an http or https URL, or a path that begins with one slash'

/**
 * True if an image address is safe. Browsers treat a backslash as a slash and ignore control characters, so a path that
 * contains them may lead to another site.
 */
export function isSafeImageAddress(address: string): boolean {
  if (/[\\\p{Cc}]/u.test(address)) return false
  if (/^https?:\/\//i.test(address)) return URL.canParse(address)
  return /^\/(?!\/)/.test(address)
}
