/**
 * Converts an untrusted name to text that no mail program turns into a link and that stays on one line. It therefore
 * can't mislead a recipient.
 */
export function toPlainName(text: string): string {
  const spaced = toOneLine(text)
    .replace(/[/\\]+/g, '/')
    // Every dot gets a space after it, as at the end of a sentence.
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

// A subject has at most 200 characters, including the text around the name.
const MAX_CHARACTERS = 120

/**
 * Normalizes text to one line and to one form of each character: programs treat look-alikes of dots and slashes as the
 * real ones. Keeps joiners of letters and emoji.
 */
export function toOneLine(text: string): string {
  return text
    .normalize('NFKC')
    .replace(/(?:(?![\u200c\u200d])[\s\p{Cc}\p{Cf}\p{Cs}])+/gu, ' ')
    .trim()
}
