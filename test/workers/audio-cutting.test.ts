import assert from 'node:assert/strict'
import { afterEach, describe, test } from 'node:test'
import { sniffMediaType } from '../../tasks/documents/media.ts'
import { audioFileNameOf } from '../../tasks/voice/recognition.ts'
import { close, cut, read } from '../../workers/children/audio/work.ts'
import {
  AC3,
  createRecordingAt,
  createRecordingIn,
  createToneWav,
  ENCODINGS,
  measureWav,
  type Pause,
} from '../recordings.ts'

/** Recordings are cut at pauses, without gaps and without a loss of sound. */

afterEach(close)

const PAUSES: readonly Pause[] = [
  [17.2, 17.8],
  [19, 19.1],
  [36, 36.5],
  [55, 56],
]
const SECONDS = 60
const LIMITS = { maxBytes: 100_000_000, maxSeconds: 20 }

function readPiece(): Buffer {
  const parts: Uint8Array[] = []
  for (let at = 0; ; ) {
    const part = read(at)
    if (part.length === 0) return Buffer.concat(parts)
    parts.push(part)
    at += part.length
  }
}

interface CutPiece {
  readonly start: number
  readonly end: number
  readonly bytes: Buffer
  readonly mediaType: string
}

/** Cuts a whole recording, each piece in a new reader. */
async function cutAll(recording: Buffer, limits = LIMITS): Promise<CutPiece[]> {
  const pieces: CutPiece[] = []
  for (;;) {
    const piece = await cut(Uint8Array.from(recording), { from: pieces.at(-1)?.end ?? 0, ...limits })
    if ('reason' in piece) throw new Error(piece.reason)
    const bytes = readPiece()
    assert.equal(bytes.length, piece.byteSize)
    pieces.push({ ...piece, bytes })
    if (piece.isLast) return pieces
    assert.ok(pieces.length < 100)
  }
}

function assertCutAtPauses(pieces: readonly CutPiece[]): void {
  let at = 0
  for (const { start, end } of pieces) {
    assert.ok(Math.abs(start - at) < 0.001, `${start} follows ${at}`)
    assert.ok(end - start <= LIMITS.maxSeconds + 0.001)
    at = end
  }
  assert.ok(Math.abs(at - SECONDS) < 0.1, `the last piece ends at ${at}`)
  for (const { end } of pieces.slice(0, -1))
    assert.ok(
      PAUSES.some(([from, to]) => end > from && end < to),
      `${end} is in a pause`,
    )
}

test('a WAV file is cut in the middle of pauses, sample by sample', async () => {
  const recording = createToneWav(SECONDS, PAUSES)
  const pieces = await cutAll(recording)
  assertCutAtPauses(pieces)
  assert.ok(Math.abs(pieces[0]!.end - 17.5) < 0.15, `${pieces[0]!.end}`)
  const sound = pieces.map(({ bytes }) => bytes.subarray(bytes.indexOf('data') + 8))
  assert.ok(Buffer.concat(sound).equals(recording.subarray(44)))
  for (const { bytes } of pieces.slice(1)) assert.ok(measureWav(bytes).first > 0.05)
})

test('a pause far from the limit is found if there is no other', async () => {
  for (const pause of [
    [11, 11.4],
    [2, 2.3],
  ] as const) {
    const [first] = await cutAll(createToneWav(30, [pause]))
    assert.ok(first!.end > pause[0] && first!.end < pause[1], `${first!.end}`)
  }
  for (const encoding of Object.values(ENCODINGS)) {
    const [first] = await cutAll(await createRecordingIn(encoding, 30, [[7, 7.5]]))
    assert.ok(first!.end > 7 && first!.end < 7.5, `${encoding.codec}: ${first!.end}`)
  }
})

test('a WAV file whose recorder left its size open is cut, too', async () => {
  for (const size of [0, 0xffff_ffff]) {
    const recording = createToneWav(SECONDS, PAUSES)
    recording.writeUInt32LE(size, 4)
    recording.writeUInt32LE(size, 40)
    assertCutAtPauses(await cutAll(recording))
  }
})

test('without a pause, a piece ends within its last fifth', async () => {
  const pieces = await cutAll(createToneWav(SECONDS, []))
  for (const { start, end } of pieces.slice(0, -1)) assert.ok(end - start >= 15.9)
})

describe('each format is cut at pauses:', () => {
  for (const format of Object.keys(ENCODINGS) as (keyof typeof ENCODINGS)[])
    test(format, async () => {
      const recording = await createRecordingIn(ENCODINGS[format], SECONDS, PAUSES)
      const pieces = await cutAll(recording)
      assertCutAtPauses(pieces)
      for (const { bytes, mediaType } of pieces) {
        const detected = await sniffMediaType(bytes, {})
        assert.equal(audioFileNameOf(detected), audioFileNameOf(mediaType)!.replace('m4a', 'mp4'))
        // Pieces are recordings of their own.
        const [whole] = await cutAll(bytes)
        assert.ok(whole !== undefined)
      }
    })
})

test('pieces stay within the limit of bytes', async () => {
  for (const format of ['mp3', 'ogg', 'm4a', 'flac'] as const) {
    const recording = await createRecordingIn(ENCODINGS[format], SECONDS, PAUSES)
    const maxBytes = Math.round(recording.length / 2)
    const pieces = await cutAll(recording, { maxBytes, maxSeconds: 3600 })
    assert.ok(pieces.length >= 3)
    for (const { bytes } of pieces) assert.ok(bytes.length <= maxBytes)
  }
})

test('MP3 is cut at frames of a constant size', async () => {
  const recording = await createRecordingIn(ENCODINGS.mp3, SECONDS, PAUSES)
  const frames = (bytes: Buffer): number => bytes.toString('latin1').split('\xff\xfb\x90\xc4').length
  const pieces = await cutAll(recording)
  const count = pieces.reduce((sum, { bytes }) => sum + frames(bytes) - 1, 0)
  assert.ok(count >= Math.floor(SECONDS / (1152 / 44_100)))
})

test('other files are refused with a reason', async () => {
  const limits = { from: 0, ...LIMITS }
  const wav = createToneWav(1, [])
  const cases: readonly [Buffer, RegExp][] = [
    [Buffer.alloc(1000, 7), /^it is damaged$/],
    [Buffer.concat([Buffer.from('OggS'), Buffer.alloc(3000, 9)]), /^it (is damaged|has no sound)$/],
    [
      Buffer.concat([Buffer.from('\0\0\0\x18ftypM4A ', 'latin1'), Buffer.alloc(3000, 9)]),
      /^it (is damaged|has no sound)$/,
    ],
    [await createRecordingIn(AC3, 10, []), /^its codec is ac3$/],
    [wav.subarray(0, 44), /^it is damaged$/],
  ]
  for (const [bytes, reason] of cases) {
    const answer = await cut(Uint8Array.from(bytes), limits)
    assert.ok('reason' in answer, JSON.stringify(answer))
    assert.match(answer.reason, reason)
  }
})

test('a recording is refused before its pieces would take no time', async () => {
  const times = Array.from({ length: 2000 }, () => 0)
  const recording = await createRecordingAt(ENCODINGS.webm, times, [])
  const limits = { from: 0, maxBytes: 200_000, maxSeconds: 3600 }
  assert.deepEqual(await cut(Uint8Array.from(recording), limits), { reason: 'it is damaged' })
  // A recording that fits into one piece needs no times.
  const whole = await cut(Uint8Array.from(recording), { ...limits, maxBytes: 100_000_000 })
  assert.ok('isLast' in whole && whole.isLast)
})
