/** One part of a stream; its bytes are valid until the part after the next is requested. */
export interface Part {
  readonly bytes: Buffer
  /** The stream ended within it. */
  readonly isLast: boolean
}

/**
 * Regroups a stream into parts of one size, the last of which may be shorter. Two buffers take turns, so that one can
 * be filled while the other is sent: reused memory needs no garbage collector. An empty stream is one empty part.
 */
export async function* inParts(
  chunks: AsyncIterable<Uint8Array>,
  partBytes: number,
): AsyncGenerator<Part, void> {
  const buffers: Buffer[] = []
  let used = 0
  let part = 0
  // Untouched pages take no memory: a small file costs only its size.
  const buffer = (): Buffer => (buffers[part % 2] ??= Buffer.allocUnsafeSlow(partBytes))
  for await (const chunk of chunks) {
    for (let at = 0; at < chunk.length; ) {
      if (used === partBytes) {
        yield { bytes: buffer(), isLast: false }
        used = 0
        part++
      }
      const taken = chunk.subarray(at, at + partBytes - used)
      buffer().set(taken, used)
      used += taken.length
      at += taken.length
    }
  }
  yield { bytes: buffer().subarray(0, used), isLast: true }
}
