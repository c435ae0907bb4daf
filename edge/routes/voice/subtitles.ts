import { fail } from '../../../sql/errors.ts'
import { Transcription } from '../../../tasks/voice/transcription.ts'

/** Writes transcriptions as subtitles: SubRip (SRT) and WebVTT. */

export const SUBTITLE_TYPES = { srt: 'application/x-subrip', vtt: 'text/vtt' } as const
export type SubtitleFormat = keyof typeof SUBTITLE_TYPES

type Segment = Transcription['segments'][number]
const Subtitled = Transcription.pick({ status: true, text: true, segments: true }).strip()

/** Returns the subtitles of a transcription's JSON. @throws fail('voice.no_subtitles') */
export function writeSubtitles(json: string, format: SubtitleFormat): string {
  const { status, text, segments } = Subtitled.parse(JSON.parse(json))
  if (status !== 'done') throw fail('voice.no_subtitles', { reason: `it is ${status}` })
  // A silent recording has neither text nor segments.
  if (segments.length === 0 && text !== '')
    throw fail('voice.no_subtitles', { reason: 'its model returned no segments' })
  const cues = segments
    .map((one) => ({ ...one, lines: splitLines(one.text) }))
    .filter(({ lines }) => lines.length > 0)
    // WebVTT requires this order. Segments of different speakers may overlap.
    .sort((a, b) => a.start - b.start)
  return format === 'srt' ? cues.map(writeSrtCue).join('') : `WEBVTT\n\n${cues.map(writeVttCue).join('')}`
}

type Cue = Segment & { readonly lines: readonly string[] }

/** Splits a text into lines. A blank line would end the cue. */
const splitLines = (text: string): string[] =>
  text
    .split(/[\r\n\v\f\u0085\u2028\u2029]/)
    .map((line) => line.trim())
    .filter((line) => line !== '')

function writeSrtCue({ lines, speaker, ...times }: Cue, index: number): string {
  const name = speaker === null ? '' : `${splitLines(speaker).join(' ')}: `
  // SRT has no escapes. An arrow would be read as the times of another cue.
  const text = `${name}${lines.join('\n')}`.replaceAll('-->', '→')
  return `${index + 1}\n${writeTimes(times, ',')}\n${text}\n\n`
}

function writeVttCue({ lines, speaker, ...times }: Cue): string {
  const voice = speaker === null ? '' : `<v ${escapeVtt(splitLines(speaker).join(' '))}>`
  return `${writeTimes(times, '.')}\n${voice}${escapeVtt(lines.join('\n'))}\n\n`
}

const escapeVtt = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')

function writeTimes({ start, end }: Pick<Segment, 'start' | 'end'>, point: ',' | '.'): string {
  const [from, to] = [Math.round(start * 1000), Math.round(end * 1000)]
  // A cue has to end after its start.
  return `${writeTime(from, point)} --> ${writeTime(Math.max(to, from + 1), point)}`
}

function writeTime(milliseconds: number, point: ',' | '.'): string {
  const seconds = Math.floor(milliseconds / 1000)
  const parts = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60]
  const clock = parts.map((part) => String(part).padStart(2, '0')).join(':')
  return `${clock}${point}${String(milliseconds % 1000).padStart(3, '0')}`
}
