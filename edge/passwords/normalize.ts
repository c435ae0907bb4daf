/**
 * Returns the form in which new passwords are hashed (NFKC; NIST SP 800-63B, section 3.1.1.2). Keyboards and systems
 * encode the same letter differently, such as é as one character or two.
 */
export const normalizePassword = (password: string): string => password.normalize('NFKC')

/** Returns the forms to compare with a stored hash. Hashes of other systems may cover the password as typed. */
export function listPasswordForms(password: string): readonly [normalized: string, ...asTyped: string[]] {
  const normalized = normalizePassword(password)
  return normalized === password ? [normalized] : [normalized, password]
}
