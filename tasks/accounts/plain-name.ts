/**
 * Converts an untrusted name to a single line that no mail program turns into a link. Otherwise the name could mislead
 * a recipient.
 */
export function toPlainName(text: string): string {
  const spaced = toOneLine(text)
    .replace(/[/\\]+/g, '/')
    // Add a space after every dot and colon within the text, so that mail programs detect no host name or URL.
    .replace(/[.:\u3002](?=[^\s.:\u3002])/gu, '$& ')
    .replace(/\s*@\s*/g, ' @ ')
    .trim()
  const characters = [...spaced]
  return characters.length <= MAX_CHARACTERS
    ? spaced
    : `${characters
        .slice(0, MAX_CHARACTERS - 1)
        .join('')
        .trimEnd()}…`
}

// Leaves room for the text around the name, because a subject has at most 200 characters.
const MAX_CHARACTERS = 120

/**
 * Converts text to a single line and normalizes look-alikes of dots and slashes, because programs treat them as the
 * real characters. Keeps the joiners within letters and emoji.
 */
export function toOneLine(text: string): string {
  return text
    .normalize('NFKC')
    .replace(/(?:(?![\u200c\u200d])[\s\p{Cc}\p{Cf}\p{Cs}])+/gu, ' ')
    .trim()
}
