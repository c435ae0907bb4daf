/** Keeps from public posts what could harm their readers or authors. */

/** The name of an author; null when there is none or it is an email address. */
export function publicName(name: string | null): string | null {
  const trimmed = name?.trim() ?? ''
  return trimmed === '' || /^[^\s@]+@[^\s@]+$/.test(trimmed) ? null : name
}

export const PICTURE = 'must be an http or https URL, or a path that begins with one slash'

/**
 * Whether an image address is safe for browsers. They read a backslash as a slash and ignore control characters, so a
 * path that contains these may lead to another site.
 */
export function isPicture(address: string): boolean {
  if (/[\\\p{Cc}]/u.test(address)) return false
  if (/^https?:\/\//i.test(address)) return URL.canParse(address)
  return /^\/(?!\/)/.test(address)
}
