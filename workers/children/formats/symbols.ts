/** Maps the characters of symbol fonts to Unicode. Only common symbols are known. */

// The Symbol font by byte, from 0x20 and from 0xa0.
const SYMBOL_LOW =
  ' !∀#∃%&∋()∗+,−./0123456789:;<=>?≅ΑΒΧΔΕΦΓΗΙϑΚΛΜΝΟΠΘΡΣΤΥςΩΞΨΖ[∴]⊥_‾αβχδεφγηιϕκλμνοπθρστυϖωξψζ{|}∼'
const SYMBOL_HIGH = '€ϒ′≤⁄∞ƒ♣♦♥♠↔←↑→↓°±″≥×∝∂•÷≠≡≈…⏐⎯↵ℵℑℜ℘⊗⊕∅∩∪⊃⊇⊄⊂⊆∈∉∠∇®©™∏√⋅¬∧∨⇔⇐⇑⇒⇓◊〈®©™∑'

type Symbols = Readonly<Record<number, string>>

const WINGDINGS: Symbols = {
  34: '✂', 40: '☎', 41: '✆', 42: '✉', 54: '⌛', 63: '✍', 65: '✌', 69: '☜', 70: '☞', 71: '☝',
  72: '☟', 74: '☺', 75: '😐', 76: '☹', 78: '☠', 82: '☼', 84: '❄', 88: '✠', 89: '✡', 90: '☪',
  108: '●', 109: '❍', 110: '■', 111: '☐', 112: '☐', 113: '❑', 114: '❒', 115: '⬧', 116: '⧫', 117: '◆',
  118: '❖', 119: '⬥', 120: '☒', 128: '⓪', 129: '①', 130: '②', 131: '③', 132: '④', 133: '⑤', 134: '⑥',
  135: '⑦', 136: '⑧', 137: '⑨', 138: '⑩', 140: '❶', 141: '❷', 142: '❸', 143: '❹', 144: '❺', 145: '❻',
  146: '❼', 147: '❽', 148: '❾', 149: '❿', 158: '·', 159: '•', 161: '○', 164: '◉', 167: '▪', 168: '☐',
  171: '★', 170: '✦', 182: '☆', 216: '➢', 223: '←', 224: '→', 225: '↑', 226: '↓', 232: '➔', 239: '⇦',
  240: '⇨', 241: '⇧', 242: '⇩', 251: '✗', 252: '✓', 253: '☒', 254: '☑',
} // biome-ignore format: a table
const WINGDINGS_2: Symbols = {
  79: '✗', 80: '✓', 81: '☒', 82: '☑', 83: '☒', 84: '☒', 151: '●', 162: '■', 163: '☐', 164: '☐',
  165: '☐', 152: '●',
} // biome-ignore format: a table
const WINGDINGS_3: Symbols = {
  102: '←',
  103: '→',
  104: '↑',
  105: '↓',
  117: '▶',
  125: '▶',
  112: '▲',
  113: '▼',
}
const WEBDINGS: Symbols = { 97: '✓', 99: '☐', 103: '■', 114: '✗', 52: '▶', 51: '◀', 201: '☎', 155: '✉' }

const FONTS: ReadonlyMap<string, Symbols> = new Map([
  ['symbol', fromText(0x20, SYMBOL_LOW, fromText(0xa0, SYMBOL_HIGH))],
  ['wingdings', WINGDINGS],
  ['wingdings 2', WINGDINGS_2],
  ['wingdings 3', WINGDINGS_3],
  ['webdings', WEBDINGS],
])

function fromText(from: number, characters: string, more: Symbols = {}): Symbols {
  return { ...more, ...Object.fromEntries([...characters].map((character, n) => [from + n, character])) }
}

/** True if the characters of a font are symbols, whatever their codes. */
export const isSymbolFont = (font: string): boolean => FONTS.has(font.toLowerCase())

/** Maps a text in a symbol font. Unknown symbols become spaces, because their codes are those of unrelated letters. */
export function mapSymbols(font: string, text: string): string {
  const symbols = FONTS.get(font.toLowerCase())
  if (symbols === undefined) return text
  // Word stores these characters in the private use area, at 0xf000.
  return [...text].map((character) => symbols[character.charCodeAt(0) & 0xff] ?? ' ').join('')
}
