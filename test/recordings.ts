import {
  BufferTarget,
  EncodedAudioPacketSource,
  EncodedPacket,
  FlacOutputFormat,
  MkvOutputFormat,
  Mp3OutputFormat,
  Mp4OutputFormat,
  OggOutputFormat,
  Output,
  type OutputFormat,
  WebMOutputFormat,
} from 'mediabunny'

/** Recordings of tones and pauses, in the formats of providers. */

/** A time without sound, in seconds. */
export type Pause = readonly [from: number, to: number]

const isPause = (pauses: readonly Pause[], at: number): boolean =>
  pauses.some(([from, to]) => at >= from && at < to)

const WAV_RATE = 16_000

/** Returns a WAV file with 16 bits and 16,000 samples a second: a tone, except in the pauses. */
export function createToneWav(seconds: number, pauses: readonly Pause[]): Buffer {
  const samples = Math.round(seconds * WAV_RATE)
  const bytes = Buffer.alloc(44 + samples * 2)
  bytes.write('RIFF', 0)
  bytes.writeUInt32LE(36 + samples * 2, 4)
  bytes.write('WAVEfmt ', 8)
  for (const [at, value] of [
    [16, 16],
    [24, WAV_RATE],
    [28, WAV_RATE * 2],
  ] as const)
    bytes.writeUInt32LE(value, at)
  for (const [at, value] of [
    [20, 1],
    [22, 1],
    [32, 2],
    [34, 16],
  ] as const)
    bytes.writeUInt16LE(value, at)
  bytes.write('data', 36)
  bytes.writeUInt32LE(samples * 2, 40)
  const period = Buffer.alloc(WAV_RATE * 2)
  for (let n = 0; n < WAV_RATE; n++)
    period.writeInt16LE(Math.round(Math.sin((n / WAV_RATE) * 880 * Math.PI) * 9000), n * 2)
  for (let at = 44; at < bytes.length; at += period.length) period.copy(bytes, at)
  const byteOf = (time: number): number => 44 + Math.round(time * WAV_RATE) * 2
  for (const [from, to] of pauses) bytes.fill(0, byteOf(from), byteOf(Math.min(to, seconds)))
  return bytes
}

/** The times of a WAV file's first and last sound, and its duration, in seconds; null without any sound. */
export function measureWav(bytes: Buffer) {
  const data = bytes.subarray(bytes.indexOf('data') + 8)
  const samples = new Int16Array(Uint8Array.from(data).buffer, 0, data.length >> 1)
  const isLoud = (sample: number): boolean => Math.abs(sample) > 10
  return {
    first: samples.findIndex(isLoud) / WAV_RATE,
    last: samples.findLastIndex(isLoud) / WAV_RATE,
    duration: samples.length / WAV_RATE,
  }
}

interface Encoding {
  readonly codec: 'aac' | 'ac3' | 'flac' | 'mp3' | 'opus'
  readonly name: string
  readonly rate: number
  readonly packetSeconds: number
  readonly description?: Uint8Array
  readonly create: () => OutputFormat
  readonly write: (isLoud: boolean, ordinal: number) => Uint8Array
}

const OPUS_HEAD = Buffer.from([...Buffer.from('OpusHead'), 1, 1, 0x38, 1, 0x80, 0xbb, 0, 0, 0, 0, 0])
const fill = (size: number, head: readonly number[], ordinal: number): Uint8Array => {
  const bytes = new Uint8Array(size).fill(ordinal % 250)
  bytes.set(head)
  return bytes
}
const OPUS = {
  codec: 'opus',
  name: 'opus',
  rate: 48_000,
  packetSeconds: 0.02,
  description: OPUS_HEAD,
  write: (isLoud: boolean, ordinal: number) => fill(isLoud ? 160 : 12, [0xf8], ordinal),
} as const satisfies Omit<Encoding, 'create'>

/** Returns a frame of MPEG 1, layer 3, with 128 kbit/s in mono. Only its gain tells sound from a pause. */
function writeMp3Frame(isLoud: boolean, ordinal: number): Uint8Array {
  const frame = fill(417, [0xff, 0xfb, 0x90, 0xc4], ordinal)
  const set = (from: number, count: number, value: number): void => {
    for (let n = 0; n < count; n++) {
      const [at, bit] = [(from + n) >> 3, 7 - ((from + n) & 7)]
      frame[at] = (frame[at]! & ~(1 << bit)) | (((value >> (count - 1 - n)) & 1) << bit)
    }
  }
  for (const granule of [32 + 18, 32 + 18 + 59]) {
    set(granule, 12, 1000)
    set(granule + 21, 8, isLoud ? 190 : 110)
  }
  return frame
}

function computeCrc(bytes: Uint8Array, bits: number, polynomial: number): number {
  let crc = 0
  for (const byte of bytes) {
    crc ^= byte << (bits - 8)
    for (let n = 0; n < 8; n++) crc = crc & (1 << (bits - 1)) ? (crc << 1) ^ polynomial : crc << 1
    crc &= (1 << bits) - 1
  }
  return crc
}

const FLAC_SAMPLES = 4096
const FLAC_RATE = 44_100
/** Returns a frame of FLAC in mono: verbatim samples, or one constant for a pause. */
function writeFlacFrame(isLoud: boolean, ordinal: number): Uint8Array {
  const number = Buffer.from(String.fromCodePoint(ordinal))
  const head = Buffer.concat([Buffer.from([0xff, 0xf8, 0xc9, 0x08]), number])
  const samples = isLoud ? Buffer.alloc(FLAC_SAMPLES * 2, 0x12) : Buffer.alloc(2)
  const frame = Buffer.concat([
    ...[head, Buffer.from([computeCrc(head, 8, 0x07)]), Buffer.from([isLoud ? 0x02 : 0x00]), samples],
  ])
  const check = Buffer.alloc(2)
  check.writeUInt16BE(computeCrc(frame, 16, 0x8005))
  return Buffer.concat([frame, check])
}

function describeFlac(): Uint8Array {
  const info = Buffer.alloc(34)
  info.writeUInt16BE(FLAC_SAMPLES, 0)
  info.writeUInt16BE(FLAC_SAMPLES, 2)
  // 20 bits of the rate, 3 of the channels, 5 of the sample size, and the upper 4 of the number of samples.
  info.writeUInt32BE(((FLAC_RATE << 12) | (0 << 9) | (15 << 4)) >>> 0, 10)
  return Buffer.concat([Buffer.from('fLaC'), Buffer.from([0x80, 0, 0, 34]), info])
}

/** Each format with its codec. */
export const ENCODINGS = {
  mp3: {
    ...{ codec: 'mp3', name: 'mp3', rate: 44_100, packetSeconds: 1152 / 44_100, write: writeMp3Frame },
    create: () => new Mp3OutputFormat(),
  },
  flac: {
    ...{ codec: 'flac', name: 'flac', rate: FLAC_RATE, packetSeconds: FLAC_SAMPLES / FLAC_RATE },
    ...{ description: describeFlac(), write: writeFlacFrame },
    create: () => new FlacOutputFormat(),
  },
  ogg: { ...OPUS, create: () => new OggOutputFormat() },
  webm: { ...OPUS, create: () => new WebMOutputFormat() },
  'live webm': { ...OPUS, create: () => new WebMOutputFormat({ appendOnly: true }) },
  matroska: { ...OPUS, create: () => new MkvOutputFormat() },
  m4a: {
    ...{ codec: 'aac', name: 'mp4a.40.2', rate: 48_000, packetSeconds: 1024 / 48_000 },
    description: Buffer.from([0x11, 0x88]),
    create: () => new Mp4OutputFormat(),
    write: (isLoud: boolean, ordinal: number) => fill(isLoud ? 300 : 20, [], ordinal),
  },
} as const satisfies Readonly<Record<string, Encoding>>

/** A codec that no provider decodes. */
export const AC3: Encoding = {
  ...{ codec: 'ac3', name: 'ac-3', rate: 48_000, packetSeconds: 0.032 },
  create: () => new MkvOutputFormat(),
  write: (_, ordinal) => fill(200, [0x0b, 0x77], ordinal),
}

/** Returns a recording in a format. Its packets are well formed, but decode to noise. */
export const createRecordingIn = (
  encoding: Encoding,
  seconds: number,
  pauses: readonly Pause[],
): Promise<Buffer> => {
  const count = Math.ceil(seconds / encoding.packetSeconds)
  const times = Array.from({ length: count }, (_, n) => n * encoding.packetSeconds)
  return createRecordingAt(encoding, times, pauses)
}

/** Returns a recording in a format, with a packet at each time. */
export async function createRecordingAt(
  encoding: Encoding,
  times: readonly number[],
  pauses: readonly Pause[],
): Promise<Buffer> {
  const { codec, name, rate, packetSeconds, create, write, ...more } = encoding
  const target = new BufferTarget()
  const output = new Output({ format: create(), target })
  const source = new EncodedAudioPacketSource(codec)
  output.addAudioTrack(source)
  await output.start()
  const decoderConfig = { codec: name, sampleRate: rate, numberOfChannels: 1, ...more }
  for (const [n, time] of times.entries()) {
    const data = write(!isPause(pauses, time), n)
    await source.add(new EncodedPacket(data, 'key', time, packetSeconds), { decoderConfig })
  }
  await output.finalize()
  return Buffer.from(target.buffer!)
}
