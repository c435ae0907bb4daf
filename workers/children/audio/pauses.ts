/** Finds the pause at which a recording is cut. */

/** A packet of sound with its start in seconds. */
export interface SoundPacket {
  readonly timestamp: number
  readonly loudness: number
}

// The last part of a piece, in which its end is chosen. Most speech pauses every few seconds.
const WINDOW_SHARE = 0.2
const MAX_WINDOW_SECONDS = 120
// Distance up to which sound counts, with less weight the more distant it is.
const REACH_SECONDS = 1
const CENTER_SECONDS = 0.1

/** Returns the index of the packet before which the quietest place is. Never 0, unless there is one packet. */
export function findPause(packets: readonly SoundPacket[]): number {
  const last = packets.length - 1
  if (last < 1) return last
  const end = packets[last]!.timestamp
  const window = Math.min((end - packets[0]!.timestamp) * WINDOW_SHARE, MAX_WINDOW_SECONDS)
  let [best, least] = [last, Number.POSITIVE_INFINITY]
  for (let n = last; n > 0 && packets[n]!.timestamp >= end - window; n--) {
    const loudness = measureAround(packets, n)
    if (loudness < least) [best, least] = [n, loudness]
  }
  return best
}

/** Returns the weighted mean of the loudness around the start of a packet. */
function measureAround(packets: readonly SoundPacket[], index: number): number {
  const at = packets[index]!.timestamp
  let [sum, weights] = [0, 0]
  const add = (n: number): boolean => {
    const packet = packets[n]
    const next = packets[n + 1]
    if (packet === undefined || next === undefined) return false
    const center = (packet.timestamp + next.timestamp) / 2
    const distance = Math.abs(center - at)
    if (distance > REACH_SECONDS) return false
    const weight = (next.timestamp - packet.timestamp) / (CENTER_SECONDS + distance) ** 2
    sum += weight * packet.loudness
    weights += weight
    return true
  }
  for (let n = index; add(n); n++);
  for (let n = index - 1; add(n); n--);
  return weights === 0 ? 0 : sum / weights
}
