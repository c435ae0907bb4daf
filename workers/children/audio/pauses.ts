/** Finds the pause at which a recording is cut. */

/** A packet of sound with its start in seconds. */
export interface SoundPacket {
  readonly timestamp: number
  readonly loudness: number
}

// A piece ends in its last fifth, but at most this much before its limit. Most speech pauses every few seconds. Without a
// pause there, the search goes back further.
const FIRST_SHARE = 0.2
const FIRST_SECONDS = 120
const LATER_SHARES = [0.5, 0.95] as const
// Distance up to which sound counts, with less weight the more distant it is.
const REACH_SECONDS = 1
const CENTER_SECONDS = 0.1
// In a pause, the sound is this much weaker than on average.
const PAUSE_SHARE = 0.2

/** Returns the index of the packet before which the quietest place is. Never 0, unless there is one packet. */
export function findPause(packets: readonly SoundPacket[]): number {
  const last = packets.length - 1
  if (last < 1) return last
  const end = packets[last]!.timestamp
  const length = end - packets[0]!.timestamp
  const mean = packets.reduce((sum, { loudness }) => sum + loudness, 0) / packets.length
  const first = findQuietest(packets, end - Math.min(length * FIRST_SHARE, FIRST_SECONDS))
  for (const share of [0, ...LATER_SHARES]) {
    const found = share === 0 ? first : findQuietest(packets, end - length * share)
    if (measureAround(packets, found, CENTER_SECONDS) <= mean * PAUSE_SHARE) return found
  }
  return first
}

function findQuietest(packets: readonly SoundPacket[], from: number): number {
  const last = packets.length - 1
  let [best, least] = [last, Number.POSITIVE_INFINITY]
  for (let n = last; n > 0 && packets[n]!.timestamp >= from; n--) {
    const loudness = measureAround(packets, n, REACH_SECONDS)
    if (loudness < least) [best, least] = [n, loudness]
  }
  return best
}

/** Returns the weighted mean of the loudness within reach of a packet's start, and of both packets next to it. */
function measureAround(packets: readonly SoundPacket[], index: number, reach: number): number {
  const at = packets[index]!.timestamp
  let [sum, weights] = [0, 0]
  const add = (n: number): boolean => {
    const packet = packets[n]
    const next = packets[n + 1]
    if (packet === undefined || next === undefined) return false
    const distance = Math.abs((packet.timestamp + next.timestamp) / 2 - at)
    if (distance > reach && n !== index && n !== index - 1) return false
    const weight = (next.timestamp - packet.timestamp) / (CENTER_SECONDS + distance) ** 2
    sum += weight * packet.loudness
    weights += weight
    return true
  }
  for (let n = index; add(n); n++);
  for (let n = index - 1; add(n); n--);
  return weights === 0 ? 0 : sum / weights
}
