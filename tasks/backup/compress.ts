import { PassThrough, pipeline, type Readable } from 'node:stream'
import { createGzip } from 'node:zlib'
import type { Snapshot, Source } from '../../sql/backup/dump.ts'
import { endFrame, sectionFrames } from '../../sql/backup/format.ts'

// Fast, and still compresses text well; images and PDFs do not get smaller anyway.
const GZIP = { level: 3, chunkSize: 256 * 1024 }
// A part of a table usually fits, so that its connection goes on with another one before it is written.
const AHEAD_BYTES = 16 * 1024 * 1024

/**
 * The compressed bytes of sections, in their order, each a gzip member of its own: as many sections are read and compressed
 * at a time as there are connections.
 */
export async function* compressed(
  sources: AsyncIterable<Source>,
  readers: Snapshot['readers'],
): AsyncGenerator<Uint8Array> {
  const idle = [...readers]
  const begun: { readonly bytes: Readable; readonly done: () => void }[] = []
  let count = 0
  try {
    for await (const { header, read } of sources) {
      if (idle.length === 0) yield* first(begun)
      const reader = idle.pop()!
      count++
      begun.push({
        bytes: gzipped(sectionFrames({ header, data: read(reader) })),
        done: () => idle.push(reader),
      })
    }
    while (begun.length > 0) yield* first(begun)
    yield* gzipped(endFrame(count))
  } finally {
    for (const { bytes } of begun) bytes.destroy()
  }
}

async function* first(
  begun: { readonly bytes: Readable; readonly done: () => void }[],
): AsyncGenerator<Uint8Array> {
  yield* begun[0]!.bytes
  begun.shift()!.done()
}

function gzipped(frames: AsyncIterable<Uint8Array> | Iterable<Uint8Array>): Readable {
  const ahead = new PassThrough({ highWaterMark: AHEAD_BYTES })
  // An error ends `ahead` with it, and what reads that gets it, perhaps later.
  ahead.on('error', () => {})
  pipeline(frames, createGzip(GZIP), ahead, () => {})
  return ahead
}
