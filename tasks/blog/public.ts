/** What of a post could harm its readers, or whoever wrote it: a post is public. */

/** The name of an author; null when there is none, or when it is an e-mail address. */
export function publicName(name: string | null): string | null {
  const trimmed = name?.trim() ?? ''
  return trimmed === '' || /^[^\s@]+@[^\s@]+$/.test(trimmed) ? null : name
}

export const PICTURE = 'must be an http or https URL, or a path that begins with one slash'

/**
 * Whether a picture is where a browser may look for it. Browsers read a backslash as a slash and leave out control
 * characters: what looks like a path with them is another site.
 */
export function isPicture(address: string): boolean {
  if (/[\\\p{Cc}]/u.test(address)) return false
  if (/^https?:\/\//i.test(address)) return URL.canParse(address)
  return /^\/(?!\/)/.test(address)
}
