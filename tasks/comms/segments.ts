// The alphabet of SMS and its extension, whose characters need an escape first (3GPP TS 23.038, section 6.2.1).
const GSM =
  '@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !"#¤%&\'()*+,-./0123456789:;<=>?¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà'
const GSM_EXTENSION = '\f^{}\\[~]|€'
const COSTS = new Map([
  ...[...GSM].map((c) => [c, 1] as const),
  ...[...GSM_EXTENSION].map((c) => [c, 2] as const),
])

/** Units of a single message, and of each part of a longer one, which begins with a header of 6 bytes. */
const GSM_UNITS = { alone: 160, part: 153 }
const UCS2_UNITS = { alone: 70, part: 67 }

export interface Segments {
  readonly encoding: 'GSM-7' | 'UCS-2'
  readonly count: number
}

/** The number of parts in which a text message is sent. A character of two units is never split. */
export function segmentsOf(body: string): Segments {
  const characters = [...body]
  if (characters.every((character) => COSTS.has(character)))
    return { encoding: 'GSM-7', count: parts(characters, (character) => COSTS.get(character)!, GSM_UNITS) }
  return { encoding: 'UCS-2', count: parts(characters, (character) => character.length, UCS2_UNITS) }
}

function parts(
  characters: readonly string[],
  costOf: (character: string) => number,
  units: { readonly alone: number; readonly part: number },
): number {
  const total = characters.reduce((sum, character) => sum + costOf(character), 0)
  if (total <= units.alone) return 1
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
