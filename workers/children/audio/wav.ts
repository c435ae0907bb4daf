const HEADER_BYTES = 12
const CHUNK_BYTES = 8

/** Sets the sizes of a WAV file and of its sound to all that follows, if its recorder has left them at 0. */
export function completeWav(bytes: Uint8Array): void {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const nameAt = (at: number): string => String.fromCharCode(...bytes.subarray(at, at + 4))
  if (bytes.length < HEADER_BYTES || nameAt(0) !== 'RIFF' || nameAt(8) !== 'WAVE') return
  if (view.getUint32(4, true) === 0) view.setUint32(4, bytes.length - CHUNK_BYTES, true)
  for (let at = HEADER_BYTES; at + CHUNK_BYTES < bytes.length; ) {
    const size = view.getUint32(at + 4, true)
    if (nameAt(at) === 'data') {
      if (size === 0) view.setUint32(at + 4, bytes.length - at - CHUNK_BYTES, true)
      return
    }
    // Chunks have an even size.
    at += CHUNK_BYTES + size + (size & 1)
  }
}
