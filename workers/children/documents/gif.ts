/** GIF files: their frames, each as a file of its own. */

/** One frame as it is stored: often only what has changed since the one before. */
export interface GifFrame {
  /** A file with this frame alone, with the size of the whole picture. */
  readonly bytes: Uint8Array
  readonly left: number
  readonly top: number
  readonly width: number
  readonly height: number
  /** What becomes of it before the next one: it stays, its area is cleared, or what was there before is restored. */
  readonly after: 'stays' | 'cleared' | 'restored'
}

const MOST_FRAMES = 1000
const EXTENSION = 0x21
const CONTROL = 0xf9
const IMAGE = 0x2c
const TRAILER = Buffer.from([0x3b])

/** The frames of a GIF (GIF89a specification, sections 18 to 25), at most 1000; if it is damaged, the complete ones. */
export function gifFrames(bytes: Uint8Array): GifFrame[] {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const frames: GifFrame[] = []
  const table = (flags: number): number => (flags & 0x80 ? 3 * 2 ** ((flags & 7) + 1) : 0)
  /** The offset of the first byte after a chain of blocks. */
  const behind = (at: number): number => {
    let next = at
    while (view.getUint8(next) !== 0) next += view.getUint8(next) + 1
    return next + 1
  }
  try {
    const head = 13 + table(view.getUint8(10))
    let control = bytes.subarray(0, 0)
    for (let at = head; frames.length < MOST_FRAMES; ) {
      const kind = view.getUint8(at)
      if (kind === EXTENSION) {
        const next = behind(at + 2)
        if (view.getUint8(at + 1) === CONTROL) control = bytes.subarray(at, next)
        at = next
      } else if (kind === IMAGE) {
        const next = behind(at + 10 + table(view.getUint8(at + 9)) + 1)
        const [left, top, width, height] = [1, 3, 5, 7].map((place) => view.getUint16(at + place, true)) as [
          number,
          number,
          number,
          number,
        ]
        frames.push({
          bytes: Buffer.concat([bytes.subarray(0, head), control, bytes.subarray(at, next), TRAILER]),
          ...{ left, top, width, height },
          after:
            (['stays', 'stays', 'cleared', 'restored'] as const)[((control[3] ?? 0) >> 2) & 7] ?? 'stays',
        })
        control = bytes.subarray(0, 0)
        at = next
      } else break
    }
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
  }
  return frames
}
