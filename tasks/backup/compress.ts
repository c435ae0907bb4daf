import { PassThrough, pipeline, type Readable } from 'node:stream'
import { createGzip } from 'node:zlib'
import type { SectionSource, Snapshot } from '../../sql/server/backup/dump.ts'
import { encodeFinalFrame, encodeSection } from '../../sql/server/backup/format.ts'

// Level 3 is fast and still compresses text well; images and PDFs do not shrink at any level.
const GZIP_OPTIONS = { level: 3, chunkSize: 256 * 1024 }
// Usually holds a whole part of a table, so that a connection can read the next part before this one has been written.
const READ_AHEAD_BYTES = 16 * 1024 * 1024

/**
 * Compresses each section to a separate gzip member and yields the members in order. Several connections read
 * concurrently, one section each.
 */
export async function* compressSections(
  sources: AsyncIterable<SectionSource>,
  readers: Snapshot['readers'],
): AsyncGenerator<Uint8Array> {
  const idle = [...readers]
  const started: { readonly bytes: Readable; readonly done: () => void }[] = []
  let count = 0
  try {
    for await (const { header, read } of sources) {
      if (idle.length === 0) yield* drainFirst(started)
      const reader = idle.pop()!
      count++
      started.push({
        bytes: gzipFrames(encodeSection({ header, data: read(reader) })),
        done: () => idle.push(reader),
      })
    }
    while (started.length > 0) yield* drainFirst(started)
    yield* gzipFrames(encodeFinalFrame(count))
  } finally {
    for (const { bytes } of started) bytes.destroy()
  }
}

async function* drainFirst(
  started: { readonly bytes: Readable; readonly done: () => void }[],
): AsyncGenerator<Uint8Array> {
  yield* started[0]!.bytes
  started.shift()!.done()
}

function gzipFrames(frames: AsyncIterable<Uint8Array> | Iterable<Uint8Array>): Readable {
  const ahead = new PassThrough({ highWaterMark: READ_AHEAD_BYTES })
  // The reader of `ahead` gets the error anyway. Without this listener, the event would crash the process.
  ahead.on('error', () => {})
  pipeline(frames, createGzip(GZIP_OPTIONS), ahead, () => {})
  return ahead
}
