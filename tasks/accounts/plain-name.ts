/**
 * A name that a stranger has typed, as text that no mail program makes a link of and that can't look like more than one
 * line: it may say what it likes, and nobody is led away by it.
 */
export function plainName(text: string): string {
  const apart = oneLine(text)
    .replace(/[/\\]+/g, '/')
    // What follows an end of a sentence has a space before it: so has what follows a dot here.
    .replace(/[.:\u3002](?=[^\s.:\u3002])/gu, '$& ')
    .replace(/\s*@\s*/g, ' @ ')
    .trim()
  const characters = [...apart]
  return characters.length <= MOST
    ? apart
    : `${characters
        .slice(0, MOST - 1)
        .join('')
        .trimEnd()}…`
}

// A subject may have 200 with what stands around the name.
const MOST = 120

/**
 * In one line and with one form for each character: dots and slashes have some that look the same and that a program
 * reads as such. What joins letters and pictures stays.
 */
export function oneLine(text: string): string {
  return text
    .normalize('NFKC')
    .replace(/(?:(?![\u200c\u200d])[\s\p{Cc}\p{Cf}\p{Cs}])+/gu, ' ')
    .trim()
}
