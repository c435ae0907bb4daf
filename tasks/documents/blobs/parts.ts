/** A part of a stream. Its bytes are valid until the part after the next one is requested. */
export interface Part {
  readonly bytes: Buffer
  /** True if the stream ends with this part. */
  readonly isLast: boolean
}

/**
 * Regroups a stream into parts of equal size; the last may be shorter. Fills one of two buffers while the other is
 * sent, and reuses both, so that the garbage collector has no work. An empty stream yields one empty part.
 */
export async function* splitIntoParts(
  chunks: AsyncIterable<Uint8Array>,
  partBytes: number,
): AsyncGenerator<Part, void> {
  const buffers: Buffer[] = []
  let used = 0
  let part = 0
  // Untouched memory pages cost nothing, so a small file takes little memory.
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
