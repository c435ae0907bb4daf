import {
  ALL_FORMATS,
  BufferSource,
  BufferTarget,
  EncodedAudioPacketSource,
  type EncodedPacket,
  EncodedPacketSink,
  FlacOutputFormat,
  Input,
  type InputAudioTrack,
  Mp3OutputFormat,
  Mp4OutputFormat,
  OggOutputFormat,
  Output,
  type OutputFormat,
  WavOutputFormat,
} from 'mediabunny'
import { copyPiece, type Work } from '../work.ts'
import { chooseMeasure } from './loudness.ts'
import { findPause, type SoundPacket } from './pauses.ts'
import { completeWav } from './wav.ts'

/** Cuts recordings inside a child. It copies the encoded packets, so that nothing is decoded and no quality is lost. */

/** A format in which pieces are written, with the media type that transcriptions know it by. */
interface PieceFormat {
  readonly mediaType: string
  readonly create: () => OutputFormat
}

const FLAC: PieceFormat = { mediaType: 'audio/flac', create: () => new FlacOutputFormat() }
const MP3: PieceFormat = { mediaType: 'audio/mpeg', create: () => new Mp3OutputFormat() }
const MP4: PieceFormat = {
  mediaType: 'audio/mp4',
  create: () => new Mp4OutputFormat({ fastStart: 'in-memory' }),
}
const OGG: PieceFormat = { mediaType: 'audio/ogg', create: () => new OggOutputFormat() }
const WAV: PieceFormat = { mediaType: 'audio/wav', create: () => new WavOutputFormat() }
const FORMATS_BY_CODEC: Readonly<Record<string, PieceFormat>> = {
  ...{ aac: MP4, flac: FLAC, mp3: MP3, opus: OGG, vorbis: OGG },
  ...{ 'pcm-u8': WAV, 'pcm-s16': WAV, 'pcm-s24': WAV, 'pcm-s32': WAV, 'pcm-f32': WAV, ulaw: WAV, alaw: WAV },
}

// Allowance for headers and indexes of a piece, and for those of each packet.
const HEADER_BYTES = 64 * 1024
const PACKET_BYTES = 20

let piece: Uint8Array = new Uint8Array()

/** Cuts the next piece, or returns the reason why this is impossible, as a sentence without its full stop. */
export async function cut(
  bytes: Uint8Array<ArrayBuffer>,
  limits: Work['audio.cut']['request'],
): Promise<Work['audio.cut']['answer']> {
  try {
    return await cutTrack(bytes, limits)
  } catch {
    // Mediabunny throws errors of many classes for damaged files.
    return { reason: 'it is damaged' }
  }
}

async function cutTrack(
  bytes: Uint8Array<ArrayBuffer>,
  limits: Work['audio.cut']['request'],
): Promise<Work['audio.cut']['answer']> {
  completeWav(bytes)
  const input = new Input({ source: new BufferSource(bytes), formats: ALL_FORMATS })
  const track = await input.getPrimaryAudioTrack()
  if (track === null) return { reason: 'it has no sound' }
  const format = FORMATS_BY_CODEC[track.codec ?? '']
  if (format === undefined) return { reason: `its codec is ${track.codec ?? 'unknown'}` }
  const { packets, end, isLast } = await collectPackets(track, limits)
  if (packets.length === 0) return { reason: 'it is damaged' }
  const start = Math.max(0, packets[0]!.timestamp)
  // Damaged times: the next piece would repeat this one.
  if (!isLast && end <= Math.max(start, limits.from)) return { reason: 'it is damaged' }
  piece = await writePiece(track, format, packets)
  if (piece.length > limits.maxBytes) return { reason: 'it is damaged' }
  return {
    start,
    end,
    totalSeconds: Math.max(end, await track.computeDuration()),
    isLast,
    mediaType: format.mediaType,
    byteSize: piece.length,
  }
}

/** Copies a part of the piece; empty at its end. */
export const read = (at: number): Uint8Array => copyPiece(piece, at)

export function close(): void {
  piece = new Uint8Array()
}

interface Collected {
  readonly packets: readonly EncodedPacket[]
  /** The start of the next piece, or the end of the recording. */
  readonly end: number
  readonly isLast: boolean
}

/** Collects the packets of the next piece, up to a pause. */
async function collectPackets(
  track: InputAudioTrack,
  { from, maxBytes, maxSeconds }: Work['audio.cut']['request'],
): Promise<Collected> {
  const sink = new EncodedPacketSink(track)
  const measure = chooseMeasure(track.codec!)
  const packets: EncodedPacket[] = []
  const sounds: SoundPacket[] = []
  let size = HEADER_BYTES
  // The first packet that starts at this time, or later: sums of durations are not exact.
  const first = from === 0 ? undefined : ((await sink.getPacket(from + 0.0005)) ?? undefined)
  for await (const packet of sink.packets(first)) {
    size += packet.byteLength + PACKET_BYTES
    const start = packets[0]?.timestamp ?? packet.timestamp
    const isFull = size > maxBytes || packet.timestamp + packet.duration - start > maxSeconds
    sounds.push({ timestamp: packet.timestamp, loudness: measure(packet.data, packet.duration) })
    if (isFull) {
      const at = findPause(sounds)
      return { packets: packets.slice(0, at), end: sounds[at]!.timestamp, isLast: false }
    }
    packets.push(packet)
  }
  const last = packets.at(-1)
  return { packets, end: last === undefined ? from : last.timestamp + last.duration, isLast: true }
}

async function writePiece(
  track: InputAudioTrack,
  format: PieceFormat,
  packets: readonly EncodedPacket[],
): Promise<Uint8Array> {
  const target = new BufferTarget()
  const output = new Output({ format: format.create(), target })
  const source = new EncodedAudioPacketSource(track.codec!)
  output.addAudioTrack(source)
  await output.start()
  const decoderConfig = (await track.getDecoderConfig()) ?? undefined
  const start = packets[0]!.timestamp
  for (const packet of packets)
    await source.add(
      packet.clone({ timestamp: packet.timestamp - start }),
      decoderConfig === undefined ? undefined : { decoderConfig },
    )
  await output.finalize()
  return new Uint8Array(target.buffer!)
}
