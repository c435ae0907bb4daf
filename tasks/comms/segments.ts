// The GSM-7 alphabet and its extension table, whose characters need an escape (3GPP TS 23.038, section 6.2.1).
const GSM_ALPHABET =
  '@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !"#¤%&\'()*+,-./0123456789:;<=>?¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà'
const GSM_EXTENSION = '\f^{}\\[~]|€'
const GSM_CHARACTER_COSTS = new Map([
  ...[...GSM_ALPHABET].map((c) => [c, 1] as const),
  ...[...GSM_EXTENSION].map((c) => [c, 2] as const),
])

/** Capacity of a single message, and of each part of a longer one, in units. Parts start with a 6-byte header. */
const GSM_UNITS = { single: 160, part: 153 }
const UCS2_UNITS = { single: 70, part: 67 }

export interface Segments {
  readonly encoding: 'GSM-7' | 'UCS-2'
  readonly count: number
}

/** Counts the parts of a text message. A part never ends within a character of two units. */
export function countSegments(body: string): Segments {
  const characters = [...body]
  if (characters.every((character) => GSM_CHARACTER_COSTS.has(character)))
    return {
      encoding: 'GSM-7',
      count: countParts(characters, (character) => GSM_CHARACTER_COSTS.get(character)!, GSM_UNITS),
    }
  return { encoding: 'UCS-2', count: countParts(characters, (character) => character.length, UCS2_UNITS) }
}

function countParts(
  characters: readonly string[],
  costOf: (character: string) => number,
  units: { readonly single: number; readonly part: number },
): number {
  const total = characters.reduce((sum, character) => sum + costOf(character), 0)
  if (total <= units.single) return 1
  let count = 1
  let used = 0
  for (const character of characters) {
    const cost = costOf(character)
    if (used + cost > units.part) {
      count++
      used = 0
    }
    used += cost
  }
  return count
}
