import { randomBytes } from 'node:crypto'
import { deriveLoginSubject } from '../../../sql/limits/limits.ts'
import { deviceProofOf, digestOf, isDeviceProof } from '../../../tasks/accounts/tokens.ts'
import type { Header } from '../../http/reply.ts'
import type { EdgeRequest } from '../../http/server.ts'
import type { Edge } from '../../pipeline/context.ts'
import { buildDeviceCookie, readDeviceCookie } from './cookies.ts'

/**
 * Recognizes browsers that have signed in to an account before. Their failed logins count separately, so that strangers
 * who guess the password do not lock them out. A cookie has an id of the browser and a proof for each account. A new
 * password invalidates the proofs.
 */

const DEVICE_ID = /^[\w-]{22}$/
const MAX_PROOFS = 5

interface Device {
  readonly id: string
  /** Newest first. */
  readonly proofs: readonly string[]
}

function readDevice(edge: Edge, request: EdgeRequest): Device {
  const [id = '', ...proofs] = (readDeviceCookie(edge, request) ?? '').split('.')
  if (DEVICE_ID.test(id)) return { id, proofs: proofs.slice(0, MAX_PROOFS) }
  return { id: randomBytes(16).toString('base64url'), proofs: [] }
}

interface DeviceAccount {
  readonly id: number
  readonly password_hash: string
}

/**
 * Returns the key under which failed logins of a request are counted. `account` is null for an unknown address, which
 * takes the same time.
 */
export function deriveLoginFailureKey(
  edge: Edge,
  request: EdgeRequest,
  email: string,
  account: DeviceAccount | null,
): Buffer {
  const { id, proofs } = readDevice(edge, request)
  const [accountId, hash] = [account?.id ?? 0, account?.password_hash ?? '']
  const isKnown = proofs.some((proof) => isDeviceProof(edge.keys, proof, id, accountId, hash))
  return deriveLoginSubject(digestOf(email), account !== null && isKnown ? digestOf(id) : null)
}

/** Returns a header that sets the cookie by which an account recognizes the browser of a request. */
export function rememberDevice(
  edge: Edge,
  request: EdgeRequest,
  accountId: number,
  passwordHash: string,
): Header {
  const { id, proofs } = readDevice(edge, request)
  const proof = deviceProofOf(edge.keys, id, accountId, passwordHash)
  const all = [...new Set([proof, ...proofs])].slice(0, MAX_PROOFS)
  return buildDeviceCookie(edge, [id, ...all].join('.'))
}
