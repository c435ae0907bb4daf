import { createHmac } from 'node:crypto'

/** An authenticator app: one-time codes as RFC 4226 and RFC 6238 have them, by nothing that the service uses. */

const DIGITS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'

/** The bytes of a text in Base 32 (RFC 4648, section 6). */
export function fromBase32(text: string): Buffer {
  const bits = [...text].map((digit) => DIGITS.indexOf(digit).toString(2).padStart(5, '0')).join('')
  return Buffer.from((bits.match(/.{8}/g) ?? []).map((byte) => Number.parseInt(byte, 2)))
}

/** The code of a time step. */
export function codeOf(secret: Buffer, step: number): string {
  const counter = Buffer.alloc(8)
  counter.writeBigUInt64BE(BigInt(step))
  const hash = createHmac('sha1', secret).update(counter).digest()
  const number = hash.readUInt32BE(hash.at(-1)! & 15) & 0x7fffffff
  return String(number % 1_000_000).padStart(6, '0')
}

/** The time step of now, or so many later. */
export const stepNow = (later = 0): number => Math.floor(Date.now() / 30_000) + later

/**
 * Uses the code of the step before now, which leaves that of now unused. Where a step has begun on the way it was two steps old, and
 * refused: then it uses the next one.
 */
export async function useEarlierCode<T extends { readonly status: number }>(
  secret: Buffer,
  use: (code: string) => Promise<T>,
): Promise<T> {
  const step = stepNow(-1)
  const answer = await use(codeOf(secret, step))
  return answer.status === 200 || stepNow(-1) === step ? answer : use(codeOf(secret, stepNow(-1)))
}
