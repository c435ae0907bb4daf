/** Language tags (BCP 47), such as `en`, `pt-BR` or `zh-Hans`. */

// RFC 5646, section 4.4.1: enough for all subtags that are not private or extensions.
const MAX_CHARACTERS = 35

/** Returns the canonical form of a tag, whose case is free (RFC 5646, section 2.1.1); null if it names no language. */
export function parseLanguageTag(tag: string): string | null {
  // Longer primary subtags are reserved, and none is registered. They would let names such as `english` pass.
  if (!/^(?!und\b)[a-z]{2,3}(-|$)/i.test(tag)) return null
  try {
    const [canonical] = Intl.getCanonicalLocales(tag)
    return canonical === undefined || canonical.length > MAX_CHARACTERS ? null : canonical
  } catch {
    return null
  }
}
