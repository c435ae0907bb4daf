import { fail } from '../../../sql/errors.ts'
import type { Edge } from '../context.ts'

/** Answers with a new secret. The answer that is stored for an Idempotency-Key has the secret in sealed form. */

const USE = 'answer'

/** Adds fields to the JSON of an answer in sealed form. `revealSealed` of its route reveals them to the caller. */
export function addSealed({ keys }: Edge, json: string, secret: object): string {
  return JSON.stringify({ ...JSON.parse(json), sealed: keys.seal(USE, JSON.stringify(secret)) })
}

/**
 * Replaces the sealed fields of an answer by the fields themselves; for `addUnstored` of a route.
 * @throws idempotency.mismatch if no key opens them, because the key of the first request is no longer accepted.
 */
export function revealSealed({ keys }: Edge, text: string): string {
  const { sealed, ...answer } = JSON.parse(text) as { readonly sealed?: string }
  if (sealed === undefined) return text
  const secret = keys.unseal(USE, sealed)
  if (secret === null) {
    const msg = 'was used for an answer that can no longer be decrypted; use another key'
    throw fail(
      'idempotency.mismatch',
      {},
      {
        problems: [{ loc: ['header', 'idempotency-key'], msg, type: 'custom' }],
      },
    )
  }
  return JSON.stringify({ ...answer, ...JSON.parse(secret) })
}
