import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { countSegments } from '../../tasks/comms/segments.ts'
import { createRunOptions } from '../runs.ts'

const gsm = (count: number) => ({ encoding: 'GSM-7', count }) as const
const ucs2 = (count: number) => ({ encoding: 'UCS-2', count }) as const

describe('the parts of a text message', () => {
  for (const [what, body, expected] of [
    ['one character', 'a', gsm(1)],
    ['160 of the alphabet', 'a'.repeat(160), gsm(1)],
    ['161', 'a'.repeat(161), gsm(2)],
    ['306, two full parts', 'a'.repeat(306), gsm(2)],
    ['307', 'a'.repeat(307), gsm(3)],
    ['1600', 'a'.repeat(1600), gsm(11)],
    ['letters and signs of the alphabet', '@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ ¤¡ÄÖÑÜ§¿äöñüà', gsm(1)],
    ['80 of the extension, which count twice', '€'.repeat(80), gsm(1)],
    ['81 of them', '€'.repeat(81), gsm(2)],
    ['one that would be cut in two at the end of a part', `${'a'.repeat(152)}€${'a'.repeat(152)}`, gsm(3)],
    ['the same, one letter less before it', `${'a'.repeat(151)}€${'a'.repeat(152)}`, gsm(2)],
    ['70 of another alphabet', '検'.repeat(70), ucs2(1)],
    ['71', '検'.repeat(71), ucs2(2)],
    ['one letter that the alphabet lacks', `${'a'.repeat(70)}ç`, ucs2(2)],
    ['134, two full parts', '検'.repeat(134), ucs2(2)],
    ['135', '検'.repeat(135), ucs2(3)],
    ['35 emoji, of two units each', '😀'.repeat(35), ucs2(1)],
    ['an emoji that would be cut in two', `${'検'.repeat(66)}😀${'検'.repeat(66)}`, ucs2(3)],
    ['a tab, which the alphabet lacks', 'a\tb', ucs2(1)],
  ] as const) {
    test(what, () => assert.deepEqual(countSegments(body), expected))
  }

  test('hold the whole text, and are as few as possible', () => {
    const character = fc.constantFrom('a', '€', '検', '😀', '[', 'ß')
    const property = fc.property(fc.array(character, { minLength: 1, maxLength: 800 }), (characters) => {
      const { encoding, count } = countSegments(characters.join(''))
      const cost = (c: string): number => (encoding === 'UCS-2' ? c.length : '€['.includes(c) ? 2 : 1)
      const total = characters.reduce((sum, c) => sum + cost(c), 0)
      const { alone, part } = encoding === 'UCS-2' ? { alone: 70, part: 67 } : { alone: 160, part: 153 }
      if (count === 1) assert.ok(total <= alone)
      else {
        assert.ok(total > alone && total <= count * part)
        // At most one unit of each part but the last is unused.
        assert.ok(total > (count - 1) * (part - 1))
      }
    })
    fc.assert(property, createRunOptions())
  })
})
