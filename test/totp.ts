import { createHmac } from 'node:crypto'

/** Authenticator app for tests. It computes one-time codes by RFC 4226 and RFC 6238, independently of the service. */

const DIGITS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'

/** Decodes Base 32 (RFC 4648, section 6). */
export function decodeBase32(text: string): Buffer {
  const bits = [...text].map((digit) => DIGITS.indexOf(digit).toString(2).padStart(5, '0')).join('')
  return Buffer.from((bits.match(/.{8}/g) ?? []).map((byte) => Number.parseInt(byte, 2)))
}

/** Returns the code for a time step. */
export function computeCode(secret: Buffer, step: number): string {
  const counter = Buffer.alloc(8)
  counter.writeBigUInt64BE(BigInt(step))
  const hash = createHmac('sha1', secret).update(counter).digest()
  const number = hash.readUInt32BE(hash.at(-1)! & 15) & 0x7fffffff
  return String(number % 1_000_000).padStart(6, '0')
}

/** Returns the current time step, or the one `later` steps after it. */
export const computeCurrentStep = (later = 0): number => Math.floor(Date.now() / 30_000) + later

/**
 * Calls `use` with the code of the previous step, so that the current code stays unused. Retries once if that code
 * expired because a new step began meanwhile.
 */
export async function useEarlierCode<T extends { readonly status: number }>(
  secret: Buffer,
  use: (code: string) => Promise<T>,
): Promise<T> {
  const step = computeCurrentStep(-1)
  const answer = await use(computeCode(secret, step))
  return answer.status === 200 || computeCurrentStep(-1) === step
    ? answer
    : use(computeCode(secret, computeCurrentStep(-1)))
}
