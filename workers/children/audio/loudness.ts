/**
 * Estimates of loudness, to find pauses without decoding. They are comparable only within a recording. Samples tell it
 * exactly and MP3 by its gain. All other codecs spend fewer bytes on silence.
 */
export type MeasureLoudness = (packet: Uint8Array, seconds: number) => number

/** Returns the measure for packets of a codec, as Mediabunny names it. */
export function chooseMeasure(codec: string): MeasureLoudness {
  if (codec === 'mp3') return measureMp3
  const readSample = SAMPLE_READERS[codec]
  return readSample === undefined ? measureSize : (packet) => measureSamples(packet, readSample)
}

// A packet has about 2,000 samples, of which this many suffice.
const MAX_SAMPLES = 256

interface SampleReader {
  readonly bytes: number
  /** Returns a sample as a distance from silence. */
  readonly read: (view: DataView, at: number) => number
}

// The four low bits are the step within a segment, and the three next ones the segment, of an inverted byte.
const readCompanded = (mask: number) => (view: DataView, at: number) => {
  const value = (view.getUint8(at) ^ mask) & 0x7f
  return ((value & 0x0f) + 16) * 2 ** (value >> 4) - 16
}

const SAMPLE_READERS: Readonly<Record<string, SampleReader>> = {
  'pcm-u8': { bytes: 1, read: (view, at) => Math.abs(view.getUint8(at) - 128) },
  'pcm-s8': { bytes: 1, read: (view, at) => Math.abs(view.getInt8(at)) },
  'pcm-s16': { bytes: 2, read: (view, at) => Math.abs(view.getInt16(at, true)) },
  'pcm-s24': { bytes: 3, read: (view, at) => Math.abs(view.getInt16(at + 1, true)) },
  'pcm-s32': { bytes: 4, read: (view, at) => Math.abs(view.getInt16(at + 2, true)) },
  'pcm-f32': { bytes: 4, read: (view, at) => Math.abs(view.getFloat32(at, true)) },
  'pcm-f64': { bytes: 8, read: (view, at) => Math.abs(view.getFloat64(at, true)) },
  ulaw: { bytes: 1, read: readCompanded(0xff) },
  alaw: { bytes: 1, read: readCompanded(0x55) },
}

function measureSamples(packet: Uint8Array, { bytes, read }: SampleReader): number {
  const view = new DataView(packet.buffer, packet.byteOffset, packet.byteLength)
  const count = Math.floor(packet.byteLength / bytes)
  // An odd step reaches each channel.
  const step = Math.max(1, Math.floor(count / MAX_SAMPLES)) | 1
  let [sum, samples] = [0, 0]
  for (let n = 0; n < count; n += step, samples++) {
    const sample = read(view, n * bytes)
    if (Number.isFinite(sample)) sum += sample
  }
  return sum / Math.max(samples, 1)
}

const measureSize: MeasureLoudness = (packet, seconds) => packet.byteLength / Math.max(seconds, 0.001)

/** Returns the largest step of the quantizer in a frame of MP3; 0 if the frame holds no spectrum (ISO 11172-3, 2.4.1). */
function measureMp3(packet: Uint8Array): number {
  const [, second = 0, , fourth = 0] = packet
  const isVersion1 = (second & 0x18) === 0x18
  const channels = fourth >> 6 === 3 ? 1 : 2
  let at = (4 + ((second & 1) === 0 ? 2 : 0)) * 8
  // The start of the main data, private bits, and the bits that share scale factors.
  at += isVersion1 ? (channels === 1 ? 9 + 5 : 9 + 3) + 4 * channels : 8 + channels
  let loudest = 0
  for (let n = 0; n < channels * (isVersion1 ? 2 : 1); n++) {
    const [length, gain] = [readBits(packet, at, 12), readBits(packet, at + 21, 8)]
    if (length > 0) loudest = Math.max(loudest, 2 ** (gain / 4))
    at += isVersion1 ? 59 : 63
  }
  return loudest
}

function readBits(bytes: Uint8Array, from: number, count: number): number {
  let value = 0
  for (let at = from; at < from + count; at++)
    value = value * 2 + (((bytes[at >> 3] ?? 0) >> (7 - (at & 7))) & 1)
  return value
}
