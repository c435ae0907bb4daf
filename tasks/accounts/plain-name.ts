/**
 * An untrusted name as text that no mail program turns into a link and that can't look like more than one line, so that
 * it can't mislead anyone.
 */
export function plainName(text: string): string {
  const apart = oneLine(text)
    .replace(/[/\\]+/g, '/')
    // As after the end of a sentence, a space follows every dot.
    .replace(/[.:\u3002](?=[^\s.:\u3002])/gu, '$& ')
    .replace(/\s*@\s*/g, ' @ ')
    .trim()
  const characters = [...apart]
  return characters.length <= MAX_CHARACTERS
    ? apart
    : `${characters
        .slice(0, MAX_CHARACTERS - 1)
        .join('')
        .trimEnd()}…`
}

// A subject may have 200 characters, including the text around the name.
const MAX_CHARACTERS = 120

/**
 * On one line and with one form of each character: dots and slashes have look-alikes that programs treat as such.
 * Joiners of letters and emoji stay.
 */
export function oneLine(text: string): string {
  return text
    .normalize('NFKC')
    .replace(/(?:(?![\u200c\u200d])[\s\p{Cc}\p{Cf}\p{Cs}])+/gu, ' ')
    .trim()
}
