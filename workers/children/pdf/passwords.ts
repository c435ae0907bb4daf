/** Forms of a password to try on an encrypted PDF. */

// Characters that SASLprep drops (RFC 3454, table B.1), and spaces that it replaces (table C.1.2).
const DROPPED = /\u034f|[\u180b-\u180d]|[\ufe00-\ufe0f]|[\u00ad\u1806\u200b-\u200d\u2060\ufeff]/g
const SPACES = /[\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]/g

/**
 * Returns the password as SASLprep prepares it (ISO 32000-2, 7.6.4.3.3), and as typed if that differs: not every program
 * prepares passwords.
 */
export function listPasswordForms(password: string): readonly string[] {
  const prepared = password.replace(DROPPED, '').replace(SPACES, ' ').normalize('NFKC')
  return [...new Set([prepared, password])]
}
