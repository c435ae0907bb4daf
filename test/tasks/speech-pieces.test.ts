import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { stripTags } from '../../tasks/voice/mp3.ts'
import { splitSpeech } from '../../tasks/voice/sentences.ts'
import { computeSpeechCost, findSpeakingLimits } from '../../tasks/voice/speaking.ts'
import { createRunOptions } from '../runs.ts'

/** Long texts are cut at sentences, and the MP3 of their pieces is joined without tags. */

const LIMITS = { characters: 40, bytes: 60 }

describe('a text is cut', () => {
  const cases: readonly [what: string, text: string, pieces: readonly string[]][] = [
    ['not at all if it fits', ' One. Two. ', [' One. Two. ']],
    [
      'at sentences',
      'The first sentence is here. A second one follows. Dr. Who?',
      ['The first sentence is here.', 'A second one follows. Dr. Who?'],
    ],
    [
      'at paragraphs',
      'A heading without a full stop\n\nAnd a paragraph below it.',
      ['A heading without a full stop', 'And a paragraph below it.'],
    ],
    [
      'between words if a sentence is too long',
      'one two three four five six seven eight nine ten',
      ['one two three four five six seven eight', 'nine ten'],
    ],
    [
      'between characters if a word is too long',
      'x'.repeat(90),
      ['x'.repeat(40), 'x'.repeat(40), 'x'.repeat(10)],
    ],
    [
      'by its bytes',
      `${'長'.repeat(15)}。${'長'.repeat(10)}。`,
      [`${'長'.repeat(15)}。`, `${'長'.repeat(10)}。`],
    ],
  ]
  for (const [what, text, pieces] of cases)
    test(what, () => assert.deepEqual(splitSpeech(text, LIMITS, null), pieces))

  test('between characters even if one has thousands of marks', () => {
    const pieces = splitSpeech(`a${'\u0301'.repeat(200)}`, LIMITS, 'en')
    assert.equal(pieces.join('').length, 201)
    for (const piece of pieces) assert.ok(Buffer.byteLength(piece) <= LIMITS.bytes)
  })

  test('between whole characters if their marks have two units', () => {
    const text = `a${'\u{e0100}'.repeat(100)}`
    const pieces = splitSpeech(text, LIMITS, 'en')
    assert.equal(pieces.join(''), text)
    for (const piece of pieces) assert.ok(piece.isWellFormed() && Buffer.byteLength(piece) <= LIMITS.bytes)
  })

  test('into pieces within the limits, which leave out only space between them', () => {
    const parts = fc.oneof(
      fc.constantFrom(
        ' ',
        '\n\n',
        '\u3000',
        '\ufeff',
        '. ',
        '! ',
        '。',
        ', ',
        '\u0301',
        '\u{e0100}',
        '長',
        '👩‍👩‍👧',
      ),
      fc.stringMatching(/^[a-zäß]{1,50}$/),
      fc.string({ unit: 'binary', maxLength: 30 }),
      fc.string({ unit: fc.integer({ min: 0xd7f0, max: 0xe010 }).map((n) => String.fromCharCode(n)) }),
    )
    fc.assert(
      fc.property(
        fc.array(parts, { maxLength: 60 }).map((some) => some.join('')),
        fc.constantFrom(LIMITS, { characters: 100, bytes: 110 }, { characters: 400, bytes: 1600 }),
        (text, limits) => {
          const pieces = splitSpeech(text, limits, null)
          if (pieces.length === 1 && pieces[0] === text) return
          const isWithin = (part: string): boolean =>
            part.length <= limits.characters && Buffer.byteLength(part) <= limits.bytes
          let [before, at] = [0, 0]
          for (const [n, piece] of pieces.entries()) {
            assert.ok(isWithin(piece) && piece !== '' && piece === piece.trim())
            const start = text.indexOf(piece, at)
            assert.equal(text.slice(at, start).trim(), '')
            at = start + piece.length
            // Two pieces would not fit into one.
            if (n > 0) assert.ok(!isWithin(text.slice(before, at)))
            before = start
          }
          assert.equal(text.slice(at).trim(), '')
        },
      ),
      createRunOptions(1000),
    )
  })

  test('of a million characters within a second of work', () => {
    const text = 'This sentence is repeated. '.repeat(37_000)
    const pieces = splitSpeech(text, findSpeakingLimits('tts-1'), 'en')
    assert.equal(pieces.join(' '), text.trim())
  })
})

test('the cost of a text is exact if the model charges by characters', () => {
  assert.equal(computeSpeechCost('tts-1', 'x'.repeat(1000)), '0.015')
  assert.equal(computeSpeechCost('tts-1-hd', '🎉x'), '0.00006')
  assert.equal(computeSpeechCost('gpt-4o-mini-tts', 'x'), null)
})

describe('tags of MP3 are removed', () => {
  async function* inPieces(bytes: Buffer, size: number): AsyncGenerator<Uint8Array> {
    for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
  }
  async function strip(bytes: Buffer, size = 700): Promise<Buffer> {
    const parts: Uint8Array[] = []
    for await (const part of stripTags(inPieces(bytes, size))) parts.push(part)
    return Buffer.concat(parts)
  }
  const createFrame = (header: readonly number[], size: number, mark = '', at = 36): Buffer => {
    const frame = Buffer.alloc(size, 0x33)
    frame.set(header)
    frame.write(mark, at)
    return frame
  }
  // 128 kbit/s at 44.1 kHz, and 64 kbit/s at 24 kHz with padding.
  const FRAMES = [
    [[0xff, 0xfb, 0x90, 0x64], 417],
    [[0xff, 0xf3, 0x86, 0xc4], 193],
  ] as const
  const id3 = (size: number, flags = 0): Buffer => {
    const head = Buffer.from([0x49, 0x44, 0x33, 4, 0, flags, 0, 0, size >> 7, size & 0x7f])
    return Buffer.concat([head, Buffer.alloc(size + (flags === 0 ? 0 : 10), 2)])
  }
  const id3v1 = Buffer.concat([Buffer.from('TAG'), Buffer.alloc(125)])

  for (const [header, size] of FRAMES) {
    const sound = Buffer.concat(Array.from({ length: 30 }, () => createFrame(header, size)))
    test(`with frames of ${size} bytes, however they arrive`, async () => {
      for (const mark of ['Xing', 'Info', 'VBRI'])
        for (const tag of [
          Buffer.alloc(0),
          id3(300),
          id3(9000),
          id3(200, 0x10),
          Buffer.concat([id3(5), id3(6)]),
        ])
          for (const end of [Buffer.alloc(0), id3v1])
            for (const piece of [100_000, 333, 1])
              assert.ok(
                (
                  await strip(Buffer.concat([tag, createFrame(header, size, mark), sound, end]), piece)
                ).equals(sound),
                `${mark} ${tag.length} ${end.length} ${piece}`,
              )
    })
    test(`but nothing else, with frames of ${size} bytes`, async () => {
      for (const bytes of [
        sound,
        sound.subarray(0, size),
        Buffer.from('short'),
        Buffer.alloc(300, 7),
        Buffer.alloc(0),
      ])
        assert.ok((await strip(bytes)).equals(bytes))
    })
  }

  test('and a file of nothing but a tag is empty', async () => {
    assert.equal((await strip(id3(300))).length, 0)
    assert.equal((await strip(id3(300).subarray(0, 100))).length, 0)
  })
})
